-- The exact model that answered, if the app asked for another name.
alter table traces add column response_model text;
