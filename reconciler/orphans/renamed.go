package orphans

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/members"
)

// allKinds is how long it may take to list what is managed in a member, of all kinds.
const allKinds = time.Minute

// renamed has the kinds watched of what was left in members while they had another name: no
// Work of the name that they have now need name these.
type renamed struct {
	mu   sync.Mutex
	seen map[string]*members.Member // by cluster
}

// find lists all kinds of a member that had another name, once for each connection.
func (r *renamed) find(ctx context.Context, cluster string, member *members.Member) error {
	r.mu.Lock()
	seen := r.seen[cluster] == member
	r.mu.Unlock()
	if seen || !member.Standing().Renamed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, allKinds)
	defer cancel()
	now := workv1alpha2.ExecutionNamespace(cluster)
	quiet := rest.CopyConfig(member.Config())
	quiet.WarningHandler = rest.NoWarnings{} // of all kinds that are listed, some are deprecated
	_, err := join.ManagedThrough(ctx, quiet, member.HTTP(), func(at join.Served, obj *metav1.PartialObjectMetadata) {
		if of := obj.Annotations[workv1alpha2.WorkNamespaceAnnotation]; of != "" && of != now {
			member.Read(at.Resource.GroupVersion().WithKind(at.Kind.Kind), types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name})
		}
	})
	if err != nil {
		return fmt.Errorf("list what was left in cluster %s while it had another name: %w", cluster, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[cluster] = member
	return nil
}

func (r *renamed) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, cluster)
}
