export const jsonContentType = 'application/json; charset=utf-8';
