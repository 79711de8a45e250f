package secrets_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/secrets"
)

func TestNoTextShowsASecret(t *testing.T) {
	var kept secrets.Values
	for _, value := range []string{"hunter2", "hunter2-and-more", "80", "line one\nline two\n", "tab\there"} {
		kept.Keep(value)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"none":                {"all is well on port 80", "all is well on port 80"},
		"one":                 {`Invalid value: "hunter2": no`, `Invalid value: "***": no`},
		"one within another":  {"hunter2-and-more, hunter2", "***, ***"},
		"a line of it":        {"at line two", "at ***"},
		"as it stands quoted": {`"tab\there"`, `"***"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := kept.Clean(loop.Waiting("InvalidObject", time.Second, errors.New(tc.text)), "other")
			want := &loop.Error{Reason: "InvalidObject", Class: loop.ClassWaiting, After: time.Second, Err: errors.New(tc.want)}
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return a.Error() == b.Error() })); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if as := loop.As(got, "other"); as.Reason != want.Reason || as.Class != want.Class || as.After != want.After {
				t.Errorf("it became %+v", as)
			}
		})
	}
	if kept.Clean(nil, "other") != nil {
		t.Error("nothing became an error")
	}
}
