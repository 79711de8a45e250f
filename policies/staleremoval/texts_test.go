package staleremoval_test

import (
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

// TestShown: the time by which a question is another one is for programs alone, and other texts stay as they are.
func TestShown(t *testing.T) {
	const text = "the agent or the control plane was away before the copy here was removed, which stays until the control plane finds a healthy one where the template is placed"
	const full = text + " (asked at 1970-01-01T00:00:01.000002Z)" // older versions ask so, too: the answer is to the very words
	if got := staleremoval.Question(time.Unix(1, 2000)); got != full {
		t.Errorf("question %q", got)
	}
	for message, want := range map[string]string{
		full:                           text,
		"its finalizers keep it":       "its finalizers keep it",
		"a webhook (asked at noon) no": "a webhook (asked at noon) no",
	} {
		if got := staleremoval.Shown(message); got != want {
			t.Errorf("%q is told as %q", message, got)
		}
	}
}
