"""The types of API objects: tables from which validation, OpenAPI, protobuf decoding and patch merging are derived."""
