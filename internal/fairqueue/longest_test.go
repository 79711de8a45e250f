package fairqueue

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// TestNobodyWaitsForLong checks that keys are soon tried again after the hub was
// away for long.
func TestNobodyWaitsForLong(t *testing.T) {
	q := New("", workqueue.DefaultTypedControllerRateLimiter[string]()).(*Queue[string])
	defer q.ShutDown()
	var last time.Duration
	for range 30 {
		last = q.limiter.When("x")
	}
	if last != longest {
		t.Errorf("after 30 failures it waits %v, want %v", last, longest)
	}
	q.Forget("x")
	if again := q.limiter.When("x"); again >= time.Second {
		t.Errorf("after a success it waits %v", again)
	}
}
