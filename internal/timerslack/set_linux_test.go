package timerslack

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
)

// threads returns the slack of so many threads of the process, new ones among them.
func threads(t *testing.T, n int) []time.Duration {
	t.Helper()
	all := make([]time.Duration, n)
	var here, done sync.WaitGroup
	here.Add(n)
	for i := range n {
		done.Go(func() {
			runtime.LockOSThread() // and never again another's: the thread ends with it
			here.Done()
			here.Wait() // none is asked twice
			var err error
			if all[i], err = get(); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	return all
}

// TestSet: all threads have the slack, those that are made later as well; what somebody
// has set already stays.
func TestSet(t *testing.T) {
	if before, err := get(); err != nil || before != untouched {
		t.Skipf("this process was started with a slack of %s; error: %v", before, err)
	}
	threads(t, 4)
	const slack = 3 * time.Millisecond
	switch err := Set(slack); {
	case errors.Is(err, errors.ErrUnsupported):
		t.Skip("linked with C, as the race detector is: make test looks without it")
	case err != nil:
		t.Fatal(err)
	}
	for _, got := range threads(t, 12) {
		if got != slack {
			t.Errorf("a thread has a slack of %s, want %s", got, slack)
		}
	}
	if err := Set(time.Second); err != nil {
		t.Fatal(err)
	}
	for _, got := range threads(t, 4) {
		if got != slack {
			t.Errorf("set again, a thread has a slack of %s, want %s", got, slack)
		}
	}
}
