package binding

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// writes records what is written to Works, in order.
type writes struct {
	client.Writer
	got []string
}

func (s *writes) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	s.got = append(s.got, string(data))
	return err
}

func (s *writes) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) error {
	s.got = append(s.got, "delete "+obj.GetName())
	return nil
}

// TestTheWordThatAClaimGoes: a Work of a volume claim is annotated before it is deleted, if a read from the control
// plane itself shows that its template is gone, which is checked again until then. Nothing is deleted if that read
// fails.
func TestTheWordThatAClaimGoes(t *testing.T) {
	const word, del = `{"metadata":{"annotations":{"propagation.flotilla.io/template-gone":"t-1"},"uid":"w-m1"}}`, "delete data-1"
	now := time.Unix(10_000, 0)
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		out := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "t-1"}}
		change(out)
		return out
	}
	there := func(*corev1.PersistentVolumeClaim) {}
	for name, tc := range map[string]struct {
		template *corev1.PersistentVolumeClaim
		fails    error
		change   func(*workv1alpha1.Work)
		want     []string
		again    time.Duration
		err      bool
	}{
		"the template is gone":      {want: []string{word, del}, again: time.Second},
		"the template is there":     {template: claim(there), want: []string{del}, again: time.Second},
		"the template is made anew": {template: claim(func(c *corev1.PersistentVolumeClaim) { c.UID = "t-2" }), want: []string{del}, again: time.Second},
		"the template is being deleted": {template: claim(func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: now}, []string{"f/f"}
		}), want: []string{word, del}, again: time.Second},
		"nobody knows":             {fails: errors.New("away"), err: true, again: time.Second},
		"the word was given":       {change: func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.TemplateGoneAnnotation] = "t-1" }, want: []string{del}},
		"it was for another":       {change: func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.TemplateGoneAnnotation] = "t-0" }, want: []string{word, del}, again: time.Second},
		"somebody named it":        {template: claim(there), change: func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.AllowCascadeAnnotation] = "true" }, want: []string{del}},
		"it is deleted, and waits": {template: claim(there), change: func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Minute)} }, again: 15 * time.Second},
		"it has waited for hours":  {template: claim(there), change: func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: now.Add(-9 * time.Hour)} }, again: lateGone},
		"the template goes later":  {change: func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: now} }, want: []string{word}, again: time.Second},
		"it is of something else": {change: func(w *workv1alpha1.Work) {
			w.Annotations[workv1alpha2.ResourceBindingNameAnnotationKey] = "web-deployment"
		}, want: []string{del}, again: time.Second},
		"it carries something else": {change: raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"data","namespace":"shop","annotations":{"resourcetemplate.karmada.io/uid":"t-1"}}}`), want: []string{del}},
	} {
		t.Run(name, func(t *testing.T) {
			w := work("m1", raw(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop","annotations":{"resourcetemplate.karmada.io/uid":"t-1"}}}`))
			w.Name, w.UID = "data-1", types.UID("w-m1")
			w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "b-1"
			w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey] = "shop"
			w.Annotations[workv1alpha2.ResourceBindingNameAnnotationKey] = workv1alpha2.BindingName("PersistentVolumeClaim", "data")
			if tc.change != nil {
				tc.change(w)
			}
			b := fake.NewClientBuilder().WithScheme(scheme.New()).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if tc.fails != nil {
						return tc.fails
					}
					return c.Get(ctx, key, obj, opts...)
				},
			})
			if tc.template != nil {
				b = b.WithObjects(tc.template)
			}
			hub, clock := &writes{}, clocktesting.NewFakePassiveClock(now)
			written := writecache.New[*workv1alpha1.Work](clock)
			p := writer{hub: hub, claims: releaser{hub: hub, live: b.Build(), written: written, clock: clock}, written: written, clock: clock, parallel: 1}
			if err := p.remove(t.Context(), []*workv1alpha1.Work{w}); (err != nil) != tc.err {
				t.Errorf("error: %v", err)
			}
			if diff := cmp.Diff(tc.want, hub.got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if got := p.claims.awaited([]*workv1alpha1.Work{w}); got != tc.again {
				t.Errorf("it is asked about again after %s, want %s", got, tc.again)
			}
		})
	}
}
