package servertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// timeout is how long a test waits for what takes milliseconds where nothing else
// goes on.
const timeout = 2 * time.Minute

// Eventually waits until check finds nothing wrong, and fails the test with what was
// wrong last if that takes too long.
func Eventually(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollEvery, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// Until is Eventually for what is done or not, with nothing more to say.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	Eventually(t, what, func(context.Context) error {
		if !done() {
			return errNotDone
		}
		return nil
	})
}

var errNotDone = errors.New("it is not so yet")
