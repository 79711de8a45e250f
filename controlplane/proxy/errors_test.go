package proxy

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"testing"
)

// TestWhyAMemberDoesNotAnswer: people are told in their words.
func TestWhyAMemberDoesNotAnswer(t *testing.T) {
	for want, err := range map[string]error{
		"cluster west: it does not answer in time":                                  fmt.Errorf("round trip: %w", context.DeadlineExceeded),
		"cluster west: it does not answer in time: Get \"/healthz\": i/o timeout":   &url.Error{Op: "Get", URL: "/healthz", Err: os.ErrDeadlineExceeded},
		"cluster west: it does not answer as a cluster does: no such thing as HTTP": fmt.Errorf("no such thing as %s", "HTTP"),
	} {
		if got := explain("west", err).Error(); got != want {
			t.Errorf("%v is told as %q, want %q", err, got, want)
		}
	}
}
