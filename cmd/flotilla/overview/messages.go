package overview

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/unreviewed"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/unsent"
)

// withUnsent adds notes on what in Alerts and Providers has no effect, on messages that do not arrive, and on reviews that are not told.
func withUnsent(ctx context.Context, hub client.Reader, within client.ListOption, fleet situation.Fleet) (situation.Fleet, error) {
	alerts, err := unsent.Read(ctx, hub, within)
	if err != nil {
		return situation.Fleet{}, err
	}
	for _, c := range alerts.Causes() {
		fleet.Notes = append(fleet.Notes, situation.Note{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, Message: c.Says(), Next: c.Next()})
	}
	return unreviewed.With(ctx, hub, within, fleet)
}
