package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/tenure"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/reconciler/execution/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/symptoms"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// member is the part of a member's connection that the loop uses.
type member interface {
	reader
	writer
	symptoms.Member
}

type reader interface {
	Read(gvk schema.GroupVersionKind, key types.NamespacedName) (*members.Observed, members.Presence)
	Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
	Served(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error)
	Autoscaled(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (bool, error)
	Standing() hubclaim.Standing
}

type writer interface {
	impersonation.Member
	Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, uid types.UID, owned metav1.DeletionPropagation) (gone bool, err error)
}

// connection is a connected member.
type connection struct{ *members.Member }

var _ member = connection{}

// Pods returns Pods of a namespace of the member, as many as the options say at most.
func (c connection) Pods(ctx context.Context, namespace string, options metav1.ListOptions) ([]corev1.Pod, error) {
	list, err := c.Clients().CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("list the Pods of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// Warnings returns some Warnings about the object with a UID.
func (c connection) Warnings(ctx context.Context, namespace string, about types.UID) ([]corev1.Event, error) {
	selector := "type=" + corev1.EventTypeWarning + ",involvedObject.uid=" + string(about)
	list, err := c.Clients().CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: mostWarnings})
	if err != nil {
		return nil, fmt.Errorf("list the Warnings of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// mostWarnings is how many Warnings of a workload are read.
const mostWarnings = 20

// connections returns the members that are connected.
type connections func(cluster string) (member, bool)

// connectionsOf returns the connections of a registry.
func connectionsOf(registry *members.Registry) connections {
	return func(cluster string) (member, bool) {
		if m, ok := registry.Get(cluster); ok {
			return connection{m}, true
		}
		return nil, false // a nil interface, not a typed nil
	}
}

// link is the connection to the member of one cluster.
type link struct {
	cluster   string
	connected connections
}

// fault returns a *waitqueue.Blocked for an error while the member is not connected, or after this program has lost its
// Lease there, and err otherwise.
func (l link) fault(err error) error {
	if _, ok := l.connected(l.cluster); !ok || errors.Is(err, tenure.ErrLeaseLost) {
		return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnProof}, After: waitqueue.SafetyNet, Err: err}
	}
	return err
}

// asked returns the manifests of Works.
type asked interface {
	Of(work *workv1alpha1.Work) []manifest.Manifest
}

// conflicts reports which other Work owns an object.
type conflicts interface {
	Conflict(ctx context.Context, work *workv1alpha1.Work, member ownermeta.Member, m *manifest.Manifest, says *members.Observed) error
}

// tries counts the failed tries of a Work, and returns how long it waits for the next.
type tries interface {
	NumRequeues(work types.NamespacedName) int
	When(work types.NamespacedName) time.Duration
}
