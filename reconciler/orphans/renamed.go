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

// renamed has the kinds watched of what was left in members while they had another name, or is there of what a store
// does not know that was set back: no Work need name these.
type renamed struct {
	mu   sync.Mutex
	seen map[string]listing // by cluster
}

// listing is one of all kinds of a member; with held, for what the store has lost.
type listing struct {
	at   *members.Member
	held bool
}

// find lists all kinds of a member that had another name, or that is held, once for each connection.
func (r *renamed) find(ctx context.Context, cluster string, member *members.Member, held bool) error {
	r.mu.Lock()
	last := r.seen[cluster]
	r.mu.Unlock()
	if last.at == member && (last.held || !held) || !held && !member.Standing().Renamed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, allKinds)
	defer cancel()
	now := workv1alpha2.ExecutionNamespace(cluster)
	quiet := rest.CopyConfig(member.Config())
	quiet.WarningHandler = rest.NoWarnings{} // of all kinds that are listed, some are deprecated
	_, err := join.ManagedThrough(ctx, quiet, member.HTTP(), func(at join.Served, obj *metav1.PartialObjectMetadata) {
		if of := obj.Annotations[workv1alpha2.WorkNamespaceAnnotation]; of != "" && (held || of != now) {
			member.Read(at.Resource.GroupVersion().WithKind(at.Kind.Kind), types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name})
		}
	})
	if err != nil {
		return fmt.Errorf("list what is left in cluster %s of all kinds: %w", cluster, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[cluster] = listing{member, held}
	return nil
}

func (r *renamed) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, cluster)
}
