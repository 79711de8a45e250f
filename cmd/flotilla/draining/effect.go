package draining

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// Effect says what a taint NoExecute does to what runs in a cluster: it moves that if failover is on, which the control
// plane notes with what it places.
func Effect(ctx context.Context, hub client.Reader) string {
	on := false
	err := each(ctx, hub, func(b workv1alpha2.Binding) {
		if record, _ := placement.RecordOf(b); record.Rules != nil {
			on = true
		}
	})
	if err == nil && on {
		return "what runs there is moved"
	}
	return "what runs there is moved if failover is on (flotillad serve --failover=on)"
}
