package hub

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestWhatEntersTheCache(t *testing.T) {
	named := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	managed := named("read")
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	cases := map[string]struct {
		shared func(runtime.Object) runtime.Object
		want   any
	}{
		"in a process that has no copy":             {nil, named("read")},
		"in a process that has a copy":              {func(runtime.Object) runtime.Object { return named("shared") }, named("shared")},
		"in a process that has a copy, not of this": {func(obj runtime.Object) runtime.Object { return obj }, named("read")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := transform(c.shared)(managed.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
