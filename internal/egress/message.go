package egress

import (
	"errors"
	"net/url"
	"strings"
)

// Message returns the text of err for people. A request that got no answer is described by what
// went wrong with it, without its method and its URL, which is long, and leads nowhere from
// where people are. The text of any other error is as it is; empty for nil.
func Message(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	for _, request := range requests(err) {
		why := Fault(request.Err)
		if errors.Is(why, ErrAnswer) {
			why = request.Err
		}
		text = strings.ReplaceAll(text, request.Error(), why.Error())
	}
	return text
}

// requests returns the requests that failed, wherever they are in err.
func requests(err error) []*url.Error {
	var out []*url.Error
	all := []error{}
	switch e := err.(type) {
	case *url.Error:
		return []*url.Error{e}
	case interface{ Unwrap() error }:
		all = append(all, e.Unwrap())
	case interface{ Unwrap() []error }:
		all = e.Unwrap()
	case interface{ Errors() []error }:
		all = e.Errors()
	}
	for _, inner := range all {
		out = append(out, requests(inner)...)
	}
	return out
}
