package binding

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// releaser annotates the Works of volume claims that may be deleted along with their Works.
type releaser struct {
	hub      client.Writer
	live     client.Reader
	released func(ctx context.Context, binding client.ObjectKey) ([]*workv1alpha1.Work, error)
	written  *writecache.Cache[*workv1alpha1.Work]
	clock    clock.PassiveClock
}

// release annotates the Work of a volume claim if a read from the control plane itself shows that the claim's
// template is gone. Without the annotation the claim stays in its cluster. It is written before
// the Work is deleted, so that the execution loop never sees the deletion without it.
func (p releaser) release(ctx context.Context, w *workv1alpha1.Work) error {
	template, carried := volumes.Carried(w)
	if !carried || template == "" || volumes.Released(w) {
		return nil
	}
	gone, err := p.isGone(ctx, w)
	if err != nil || !gone {
		return err
	}
	return p.annotate(ctx, w, workv1alpha2.TemplateGoneAnnotation, template, "the template of a claim is gone: it goes with its work")
}

// annotate sets an annotation of a Work, of its deletion; nil takes it away.
func (p releaser) annotate(ctx context.Context, w *workv1alpha1.Work, key string, value any, says string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": w.UID, "annotations": map[string]any{key: value}, // of this Work, not of a later one of its name
	}})
	if err != nil {
		return fmt.Errorf("say of work %s/%s that %s: %w", w.Namespace, w.Name, says, err)
	}
	annotated := w.DeepCopy()
	switch err := p.hub.Patch(ctx, annotated, client.RawPatch(types.MergePatchType, patch)); {
	case bindings.IsStale(err):
		return nil
	case err != nil:
		return fmt.Errorf("say of work %s/%s that %s: %w", w.Namespace, w.Name, says, err)
	}
	p.written.Wrote(annotated)
	log.FromContext(ctx).Info(says, "namespace", w.Namespace, "work", w.Name)
	return nil
}

// retain takes back that the claims of a binding's name may go, where the template is there again and a Work has not been able
// to take its claim along yet, as its cluster is away: the claim stays there with its data, and what asks for it there again takes it over.
func (p releaser) retain(ctx context.Context, s *state) (loop.Next, error) {
	if !volumes.IsVolumeClaim(s.template.GroupVersionKind().GroupKind()) || s.template.GetDeletionTimestamp() != nil {
		return loop.Next{}, nil
	}
	works, err := p.released(ctx, s.key)
	if err != nil {
		return loop.Next{}, err
	}
	for _, w := range works {
		if err := p.annotate(ctx, w, workv1alpha2.TemplateGoneAnnotation, nil, "the template of a claim is there again: it stays"); err != nil {
			return loop.Next{}, err
		}
	}
	return loop.Next{}, nil
}

// isGone reports whether the claim that is the template of a Work was deleted on the control plane. A new claim of the
// same name counts as the template: in the cluster it would use the same data.
func (p releaser) isGone(ctx context.Context, w *workv1alpha1.Work) (bool, error) {
	binding, known := bindings.OwnerOf(w)
	claim := corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	name, is := strings.CutSuffix(binding.Name, workv1alpha2.BindingName(claim.Kind, ""))
	if !known || !is { // the Work is not that of a claim's binding
		return false, nil
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(claim)
	err := p.live.Get(ctx, client.ObjectKey{Namespace: binding.Namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for the claim %s/%s: %w", binding.Namespace, name, err)
	}
	return err != nil || obj.DeletionTimestamp != nil, nil
}

// Bounds of the pause before checking again whether the template of a claim is gone whose Work is being removed. The
// pause grows with the time that the Work takes to end, for example as its cluster is unreachable.
const (
	soonGone = time.Second
	lateGone = 5 * time.Minute
)

// awaited returns the pause before checking again whether templates of claims are gone; zero if there is none to check.
func (p releaser) awaited(works []*workv1alpha1.Work) time.Duration {
	var after time.Duration
	for _, w := range works {
		if _, carried := volumes.Carried(w); !carried || volumes.Released(w) {
			continue
		}
		next := soonGone
		if w.DeletionTimestamp != nil {
			next = min(max(soonGone, p.clock.Since(w.DeletionTimestamp.Time)/4), lateGone)
		}
		if after == 0 || next < after {
			after = next
		}
	}
	return after
}
