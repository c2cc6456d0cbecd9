"""Operations on objects, used by API requests and by the controllers. Promise: no HTTP here."""
