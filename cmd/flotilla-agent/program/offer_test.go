package program

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
)

// TestAnOfferLastsUntilItIsSeen: whoever waits for the place looks every 10 s at the
// soonest, as client-go spreads its looks. Offered for 15 s, it could go unseen.
func TestAnOfferLastsUntilItIsSeen(t *testing.T) {
	longest := time.Duration(0)
	for range 10_000 {
		longest = max(longest, wait.Jitter(10*time.Second, leaderelection.JitterFactor))
	}
	if longest >= offerLasts() || longest < 15*time.Second {
		t.Errorf("the place is offered for %s; whoever waits for it looks after %s", offerLasts(), longest)
	}
}
