package author

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Author is a user of the hub who applied something.
type Author struct {
	// User is the name.
	User string `json:"user"`
	// Groups are those that somebody gave the user, sorted: not the hub's own, which
	// begin with "system:".
	Groups []string `json:"groups,omitempty"`
}

// Bounds of what is kept of an author. Groups beyond are left out, the last by name
// first: they give no rights in members.
const (
	mostGroups = 64
	mostBytes  = 4 << 10
)

// Of returns the author that a user is.
func Of(user string, groups []string) Author {
	out := Author{User: user}
	for _, group := range groups {
		if group != "" && !strings.HasPrefix(group, systemPrefix) {
			out.Groups = append(out.Groups, group)
		}
	}
	slices.Sort(out.Groups)
	out.Groups = slices.Compact(out.Groups)
	size := 0
	for i, group := range out.Groups {
		if size += len(group); i == mostGroups || size > mostBytes {
			out.Groups = out.Groups[:i]
			break
		}
	}
	if len(out.Groups) == 0 {
		out.Groups = nil
	}
	return out
}

// Authors are all whose word is in an object. None stands for the control plane and
// its administrators.
type Authors []Author

// With returns the authors with more of them, in the order in which they come. All of
// them have to be allowed what is done, so each is there once, with the fewest groups:
// groups only add rights.
func (a Authors) With(more Authors) Authors {
	out := slices.Clone(a)
	for _, one := range more {
		out = out.with(one)
	}
	return out
}

func (a Authors) with(one Author) Authors {
	if slices.ContainsFunc(a, one.mayAllOf) {
		return a
	}
	at := slices.IndexFunc(a, func(other Author) bool { return other.mayAllOf(one) })
	if at < 0 {
		return append(a, one)
	}
	a[at] = one
	for i := len(a) - 1; i > at; i-- {
		if a[i].mayAllOf(one) {
			a = slices.Delete(a, i, i+1)
		}
	}
	return a
}

// mayAllOf reports whether an author certainly has all rights of another: the same user
// with no group less.
func (a Author) mayAllOf(other Author) bool {
	return a.User == other.User && !slices.ContainsFunc(other.Groups, func(group string) bool { return !slices.Contains(a.Groups, group) })
}

// String returns the text that annotations carry; empty for none.
func (a Authors) String() string {
	if len(a) == 0 {
		return ""
	}
	text, err := json.Marshal([]Author(a))
	if err != nil {
		return "" // there is nothing in it that JSON cannot say
	}
	return string(text)
}

// ErrUnreadable says that a text names no authors. It does not stand for none.
var ErrUnreadable = errors.New("who applied it cannot be read")

// Parse reads the text of an annotation; empty is none.
func Parse(text string) (Authors, error) {
	if text == "" {
		return nil, nil
	}
	var out Authors
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if len(out) == 0 || slices.ContainsFunc(out, func(a Author) bool { return a.User == "" }) {
		return nil, fmt.Errorf("%w: it names nobody", ErrUnreadable)
	}
	return out, nil
}
