package view

import "net/url"

// Path returns the part of a path that names a workload or host, and the query that
// belongs to it: names are any text, and ".", ".." and "/" would be gone before a
// server saw them.
//
//	segment, query := view.Path(name)
//	address := "/api/v1/workloads/" + segment + "?" + query
func Path(name string) (segment, query string) {
	switch name {
	case "", ".", "..", "/", unnamed:
		return unnamed, "name=" + url.QueryEscape(name)
	}
	return url.PathEscape(name), ""
}

// unnamed is the segment that says that the name is in the query.
const unnamed = "="

// Named parses the output of Path: the segment, and the query of the request.
func Named(segment string, query url.Values) string {
	if segment == unnamed && query.Has("name") {
		return query.Get("name")
	}
	return segment
}
