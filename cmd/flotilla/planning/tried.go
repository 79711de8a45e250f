package planning

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/forecast"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// missing reads the templates of the files that the fleet's snapshot does not have, as no policy selects their kind yet.
func (w *world) missing(ctx context.Context, objects []*unstructured.Unstructured) error {
	if w.hub == nil {
		return nil
	}
	known := idsOf(w.fleet.Templates)
	for _, obj := range objects {
		id := inventory.IDOf(obj)
		if id.GroupKind.Group == policyv1alpha1.GroupVersion.Group || known[id] {
			continue
		}
		stored, err := w.look(ctx, inventory.Entry{ID: id, Version: obj.GroupVersionKind().Version})
		if err != nil {
			return err
		}
		if stored != nil {
			w.fleet.Templates = append(w.fleet.Templates, stored)
		}
	}
	return nil
}

// look reads an object of the control plane; nil if there is none.
func (w *world) look(ctx context.Context, of inventory.Entry) (*unstructured.Unstructured, error) {
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(of.GroupVersionKind())
	err := w.hub.Get(ctx, client.ObjectKey{Namespace: of.ID.Namespace, Name: of.ID.Name}, stored)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return stored, err
}

// tried returns the objects as the control plane would store them, by a dry run of what a Kustomization does. One whose
// kind or namespace is not there yet stays as the files have it.
func (w *world) tried(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	labels := map[inventory.ID]map[string]string{}
	for _, t := range w.fleet.Templates {
		labels[inventory.IDOf(t)] = t.GetLabels()
	}
	out := make([]*unstructured.Unstructured, len(objects))
	for i, obj := range objects {
		if out[i] = obj; obj.GroupVersionKind().Group == policyv1alpha1.GroupVersion.Group {
			continue
		}
		trial := obj.DeepCopy()
		own := trial.GetLabels()
		for name := range inventory.OwnerLabels(client.ObjectKey{}) { // whoever applies it goes on to do so
			if value, has := labels[inventory.IDOf(obj)][name]; has && own[name] == "" {
				if own == nil {
					own = map[string]string{}
				}
				own[name] = value
			}
		}
		trial.SetLabels(own)
		err := w.hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(trial), client.ForceOwnership, client.FieldOwner(applier.FieldManager), client.DryRunAll)
		switch {
		case err == nil:
			out[i] = trial
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("a dry run of %s %s is refused: %w; compare with files instead: --base FOLDER", obj.GetKind(), obj.GetName(), err)
		default:
			return nil, forecast.NotTakenError{Err: fmt.Errorf("the control plane does not take %s %s: %w", obj.GetKind(), obj.GetName(), err)}
		}
	}
	return out, nil
}
