package setback

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// ErrBehind says that a member has seen more of the hub than the hub knows by now.
var ErrBehind = errors.New("the cluster has seen more of this control plane than its store knows: it is a copy or from a backup. " +
	"Do it where the control plane runs on, or say flotilla resume hub once it waits for that. Where neither is so, its agent has not said yet since when it runs: try again in two minutes")

// Weigh errs with ErrBehind if the mark in a member is of a run that the hub's store has
// lost, or of further on than the store was when the hub began: the hub finds that out by
// itself once it looks, but whoever acts in the member before that must not go by the
// store. An agent may sign what the present run has shown it as of the run before, for a
// minute or two: it is refused as what was lost would be. Opened returns the revision at which
// the hub began; where that is not known, nil or 0, only what is further on than the store is
// by now is found.
func Weigh(ctx context.Context, hub client.Reader, opened func(context.Context) (int64, error), cluster string, mark *hubclaim.Mark) error {
	if mark == nil {
		return nil
	}
	system := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	if err := hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("read the history of the hub: %w", err)
	}
	history := hubclaim.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation])
	began, err := revision(ctx, hub, &workv1alpha1.WorkList{}, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)))
	if err != nil {
		return err
	}
	own, at := "", int64(0)
	if opened != nil {
		if at, err = opened(ctx); err != nil {
			return err
		}
		if at > 0 {
			own = history.Since(at)
		}
		began = min(began, cmp.Or(at, began))
	}
	if history.Outruns(mark, at) || history.Behind(mark, own, began) {
		return ErrBehind
	}
	return nil
}

// Opened asks the hub at which revision its loops began to work on the store. It returns
// 0 for a hub that does not say so, or not to this client.
func Opened(config *rest.Config) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		hub, err := kubernetes.NewForConfig(config)
		if err != nil {
			return 0, fmt.Errorf("ask the hub when it began: %w", err)
		}
		text, err := hub.RESTClient().Get().AbsPath(clusterv1alpha1.OpenedPath).DoRaw(ctx)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("ask the hub when it began: %w", err)
		}
		return number(string(text)), nil
	}
}
