package join

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/join/outlook"
)

// Going reports what would be removed from a cluster that leaves, according to
// the hub, object by object, and what would stay, and why. inside, which may be
// nil, shows what else is in the member.
func Going(ctx context.Context, hub client.Reader, cluster *clusterv1alpha1.Cluster, inside outlook.Inside, report func(Step)) error {
	will, err := outlook.Of(ctx, hub, cluster, inside)
	if err != nil {
		return err
	}
	print := func(verb, object string) { report(Step{Side: "member", Verb: verb, Object: object}) }
	run := counted(len(will.Going), "object") + " that the fleet runs there"
	switch {
	case len(will.Going) == 0:
	case will.Away != "":
		print("would leave", run+", since the cluster is not ready: "+will.Away)
	default:
		print("would remove", run)
		for _, object := range will.Going {
			print("would remove", object)
		}
	}
	for _, what := range will.Stays() {
		print("would leave", what)
	}
	if will.Unseen != nil {
		print("could not look into", fmt.Sprintf("the cluster for what others have there, which would stay: %v", will.Unseen))
	}
	return nil
}

// counted returns "1 object" or "2 objects".
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
