package member

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

// answers is a way to a server that answers all.
type answers struct{}

func (answers) RoundTrip(*http.Request) (*http.Response, error) { return &http.Response{}, nil }

// TestPodsAreReadOnceTheNodesAreKnown: a member that starts with pods in it looks at none
// of them before what knows its nodes is there.
func TestPodsAreReadOnceTheNodesAreKnown(t *testing.T) {
	started := make(chan struct{})
	gate := podsAfter{answers{}, started}
	ask := func(ctx context.Context, path string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://member"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := gate.RoundTrip(req)
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		return err
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ask(t.Context(), "/api/v1/nodes"); err != nil {
		t.Errorf("nodes: %v", err)
	}
	if err := ask(ended, "/api/v1/pods"); !errors.Is(err, context.Canceled) {
		t.Errorf("pods before the start: %v", err)
	}
	close(started)
	if err := ask(ended, "/api/v1/nodes"); err != nil {
		t.Errorf("nodes: %v", err)
	}
	if err := ask(t.Context(), "/api/v1/pods"); err != nil {
		t.Errorf("pods after the start: %v", err)
	}
}
