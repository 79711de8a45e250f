package setback

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/claims"
)

// ErrBehind says that a member has seen more of the hub than the hub knows by now.
var ErrBehind = errors.New("the cluster has seen more of this control plane than its store knows: it is a copy or from a backup. " +
	"Do it where the control plane runs on, or say flotilla resume hub once it waits for that")

// Weigh errs with ErrBehind if the mark in a member is of a run that the hub's store has
// lost, or of further on than the store is now: the hub finds that out by itself once it
// looks, but whoever acts in the member before that must not go by the store. What a store
// has lost that was less than it has grown since is found by the hub alone.
func Weigh(ctx context.Context, hub client.Reader, cluster string, mark *claims.Mark) error {
	if mark == nil {
		return nil
	}
	system := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	if err := hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("read the history of the hub: %w", err)
	}
	now, err := revision(ctx, hub, &workv1alpha1.WorkList{}, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)))
	if err != nil {
		return err
	}
	if claims.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation]).Behind(mark, "", now) {
		return ErrBehind
	}
	return nil
}
