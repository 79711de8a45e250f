package request

import (
	"context"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	// askPods is how often the Pods of what is waited for are asked after.
	askPods = 10 * time.Second
	// quietTerminal and quietPipe are how long nothing is printed at most.
	quietTerminal, quietPipe = 10 * time.Second, 30 * time.Second
	// mostAsked is how many workloads are asked after.
	mostAsked = 20
)

// signs are the signs of life of one wait. The zero value has printed nothing.
type signs struct {
	began, printed, asked time.Time
	// spoke is true if a line was printed since the last look at the clock.
	spoke bool
	// pods is what was last printed about Pods.
	pods string
}

// alive prints what keeps Pods from being ready as soon as it is known, and where nothing has been printed for a while, that
// the wait goes on.
func (w *waiting) alive(ctx context.Context) {
	now, s := w.clock.Now(), &w.signs
	if s.began.IsZero() {
		s.began, s.printed, s.asked = now, now, now
	}
	if s.spoke {
		s.spoke, s.printed = false, now
	}
	if now.Sub(s.asked) >= askPods {
		s.asked = now
		if found := notReady(ctx, w.hub, w.seen); found != "" && found != s.pods {
			s.pods, s.printed = found, now
			w.say(waits, "%s", found)
		}
	}
	if now.Sub(s.printed) >= w.quiet {
		s.printed = now
		w.say(waits, "still waiting after %s", now.Sub(s.began).Round(time.Second))
	}
}

// notReady returns what the Pods of a Kustomization's workloads report that are not ready, as in "Deployment/shop/web in west:
// ErrImagePull: web:2: not found", of the first one; empty where that is not known.
func notReady(ctx context.Context, hub client.Reader, obj client.Object) string {
	ks, is := obj.(*kustomizev1.Kustomization)
	if !is {
		return ""
	}
	entries, err := inventory.Here(ks)
	if err != nil {
		return "" // the loop reports it
	}
	asked := 0
	for _, e := range entries {
		if !inventory.IsWorkload(e.ID) || asked >= mostAsked {
			continue
		}
		asked++
		var b workv1alpha2.ResourceBinding
		key := client.ObjectKey{Namespace: e.ID.Namespace, Name: workv1alpha2.BindingName(e.ID.GroupKind.Kind, e.ID.Name)}
		if hub.Get(ctx, key, &b) != nil {
			continue // it is placed nowhere yet, or may not be read
		}
		if found := ofPods(ctx, hub, &b); found != "" {
			return inventory.Describe(e.ID) + found
		}
	}
	return ""
}

// ofPods returns " in west: ErrImagePull: web:2: not found" for a binding; empty where nothing is known.
func ofPods(ctx context.Context, hub client.Reader, b *workv1alpha2.ResourceBinding) string {
	id := b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	if id == "" {
		return ""
	}
	var works workv1alpha1.WorkList
	if hub.List(ctx, &works, client.MatchingLabels{workv1alpha2.ResourceBindingPermanentIDLabel: id}) != nil {
		return ""
	}
	for i := range works.Items {
		w := &works.Items[i]
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if text := rollup.PodsOf(w); ok && text != "" && w.DeletionTimestamp.IsZero() {
			return " in " + cluster + ": " + excerpt.Line(text)
		}
	}
	return ""
}
