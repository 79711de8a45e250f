package execution

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/execution/drift"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// workReader is the first phase: it reads what is known of a Work, and writes nothing.
type workReader struct {
	hub       client.Reader
	wrote     latest
	finalizer deletionReader
	connected connections
	manifests asked
	records   recorded
}

// latest returns Works with our own writes that the cache does not have yet.
type latest interface {
	Latest(key client.ObjectKey, cached *workv1alpha1.Work, found bool) (*workv1alpha1.Work, bool)
}

// deletionReader returns a Work as it has to be treated: as being deleted, if its binding is.
type deletionReader interface {
	Effective(ctx context.Context, work *workv1alpha1.Work) (as *workv1alpha1.Work, beside, there bool, err error)
}

// recorded returns what was applied, and what drift was corrected, by ordinal.
type recorded interface {
	Applied(work *workv1alpha1.Work, count int) []workv1alpha1.AppliedHash
	PutBack(work *workv1alpha1.Work, count int) []*drift.Drift
}

// unsafeGet reads from the cache without a copy: what is read is not changed.
var unsafeGet = client.UnsafeDisableDeepCopy

// read returns a Work with our own last write; false if it is gone.
func (l *workReader) read(ctx context.Context, key client.ObjectKey) (*workv1alpha1.Work, bool, error) {
	cached := &workv1alpha1.Work{}
	err := l.hub.Get(ctx, key, cached, unsafeGet)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("read work %s: %w", key, err)
	}
	work, found := l.wrote.Latest(key, cached, err == nil)
	return work, found && err == nil, nil
}

// about returns the state of a pass over a Work; false if the Work was ended a moment ago.
func (l *workReader) about(ctx context.Context, work *workv1alpha1.Work) (*state, bool, error) {
	key := client.ObjectKeyFromObject(work)
	as, beside, there, err := l.finalizer.Effective(ctx, work)
	if err != nil || !there {
		return nil, false, err
	}
	s := &state{key: key, work: as, beside: beside}
	name, ok := workv1alpha2.ClusterOfExecutionNamespace(key.Namespace)
	if !ok {
		return nil, false, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	switch err := l.hub.Get(ctx, client.ObjectKey{Name: name}, cluster, unsafeGet); {
	case err == nil:
		s.cluster = cluster
	case !apierrors.IsNotFound(err):
		return nil, false, fmt.Errorf("read cluster %s: %w", name, err)
	}
	s.member, _ = l.connected(name)
	return s, true, nil
}

// connect ends the pass if the member is not connected, and else reads what is recorded of the manifests. A
// Work whose dispatching is suspended passes, too: it is not applied, but its status is still reported.
func (l *workReader) connect(_ context.Context, s *state) (loop.Next, error) {
	if s.member == nil {
		cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(s.key.Namespace)
		s.blocked = &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnProof}, After: waitqueue.SafetyNet, Err: fmt.Errorf("cluster %s is not connected", cluster)}
		return loop.Next{Done: true}, nil
	}
	manifests := l.manifests.Of(s.work)
	applied, putBack := l.records.Applied(s.work, len(manifests)), l.records.PutBack(s.work, len(manifests))
	s.objects = make([]object, len(manifests))
	for i, m := range manifests {
		s.objects[i] = object{Manifest: m, record: applied[i], drift: putBack[i]}
	}
	return loop.Next{}, nil
}
