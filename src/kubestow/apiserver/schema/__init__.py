"""What the fields of API objects are: one table, from which validation, OpenAPI and merging of patches all follow."""
