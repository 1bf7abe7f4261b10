-- The exact model that answered, if the app asked for another name. Null takes no room in a row.
alter table traces add column response_model text;
