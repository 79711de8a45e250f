package registration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// Awaited is a cluster whose agent has a certificate and has never been heard of.
type Awaited struct {
	Cluster string
	// Since is when it was registered.
	Since time.Time
}

// AwaitedClusters returns the clusters that were registered and have no Cluster
// yet, sorted by name. The control plane waits for them for an hour. Until then
// the role of the agent, which no Cluster owns yet, is the only trace of them.
func AwaitedClusters(ctx context.Context, hub client.Reader) ([]Awaited, error) {
	roles := &metav1.PartialObjectMetadataList{}
	roles.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleList"))
	if err := hub.List(ctx, roles, client.HasLabels{identity.ClusterLabel}); err != nil {
		return nil, fmt.Errorf("list the roles of agents: %w", err)
	}
	var out []Awaited
	for i := range roles.Items {
		role := &roles.Items[i]
		cluster := role.Labels[identity.ClusterLabel]
		since, err := time.Parse(time.RFC3339, role.Annotations[identity.NotBeforeAnnotation])
		if role.Name == identity.Role(cluster) && metav1.GetControllerOfNoCopy(role) == nil && err == nil {
			out = append(out, Awaited{Cluster: cluster, Since: since})
		}
	}
	slices.SortFunc(out, func(a, b Awaited) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out, nil
}
