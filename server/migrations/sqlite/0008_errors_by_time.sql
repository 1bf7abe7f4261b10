-- Questions about the errors of a time range read these traces alone.
create index errors_by_event_time on traces (key >> 40, coalesce(started_at_us, created_at_us)) where is_error = 1;
