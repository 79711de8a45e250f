package proxy

import (
	"context"
	"net/http"
	"strings"
)

// query is the key of the parameters of a request for a member.
type query struct{}

// Arrive returns a request for a member without its parameters: they are for
// the member, and the hub's server would refuse some, dryRun among them. Other
// requests are returned as they are.
func Arrive(req *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(req.URL.Path, clusters)
	if !ok {
		return req
	}
	_, below, _ := strings.Cut(rest, "/")
	if sub, _, _ := strings.Cut(below, "/"); sub != subresource {
		return req
	}
	out := req.WithContext(context.WithValue(req.Context(), query{}, req.URL.RawQuery))
	bare := *req.URL
	bare.RawQuery = ""
	out.URL = &bare
	return out
}

// queryOf returns the parameters of a request as the caller sent them.
func queryOf(req *http.Request) string {
	if raw, ok := req.Context().Value(query{}).(string); ok {
		return raw
	}
	return req.URL.RawQuery
}
