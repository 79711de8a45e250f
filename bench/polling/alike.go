package polling

import (
	"context"
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/bench/results"
)

const (
	// alike is how many sources follow one repository by the same credentials, and same its name.
	alike = 100
	same  = "same"
)

// measureAlike counts what a hundred sources of one repository ask it for: until all are stored, and in a minute in which nothing
// changes.
func (f Fleet) measureAlike(ctx context.Context, r *results.Report) error {
	repo, err := f.repository(ctx, same)
	if err != nil {
		return err
	}
	if err := repo.commit(ctx, map[string]string{"kustomization.yaml": "resources: []\n"}); err != nil {
		return err
	}
	asked := f.Git.Requests()
	if err := f.follow(ctx, same, alike, func(int) string { return same }); err != nil {
		return err
	}
	r.Note("sources", "100 sources of one repository: requests until all are stored", float64(f.Git.Requests()-asked), "requests")
	asked = f.Git.Requests()
	select {
	case <-ctx.Done():
		return fmt.Errorf("watch the sources: %w", context.Cause(ctx))
	case <-time.After(minute):
	}
	// An answer is shared for a twentieth of the interval, so that no more than a request each three seconds is needed.
	r.AtMost("sources", "100 sources of one repository: requests in a minute", float64(f.Git.Requests()-asked), "requests", 22)
	return f.Client.DeleteAllOf(ctx, &sourcev1.GitRepository{}, client.InNamespace(namespace))
}
