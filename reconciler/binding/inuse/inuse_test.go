package inuse_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/binding/inuse"
)

// bound returns the binding of an object in a namespace, which is leaving these clusters.
func bound(namespace, apiVersion, kind, name string, leaves ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workv1alpha2.BindingName(kind, name)}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	for _, cluster := range leaves {
		b.Spec.GracefulEvictionTasks = append(b.Spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{FromCluster: cluster})
	}
	return b
}

// copyOf returns the Work of a binding in a cluster.
func copyOf(b *workv1alpha2.ResourceBinding, cluster string) *workv1alpha1.Work {
	of := b.Spec.Resource
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName(of.Kind, of.Name, of.Namespace)}}
}

// TestOf: a Service stays in a cluster for as long as anything that leaves it and may need the Service has its copy there.
func TestOf(t *testing.T) {
	service := bound("shop", "v1", "Service", "web", "west")
	web := bound("shop", "apps/v1", "Deployment", "web", "west")
	for name, tc := range map[string]struct {
		of     *workv1alpha2.ResourceBinding
		others []client.Object
		want   bool
	}{
		"a Deployment leaves it, too":               {service, []client.Object{web, copyOf(web, "west")}, true},
		"a Deployment has left it":                  {service, []client.Object{bound("shop", "apps/v1", "Deployment", "web"), copyOf(web, "west")}, false},
		"a Deployment leaves it, and was not there": {service, []client.Object{web}, false},
		"a Deployment leaves another cluster":       {service, []client.Object{bound("shop", "apps/v1", "Deployment", "web", "east"), copyOf(web, "east")}, false},
		"a Deployment of another namespace does":    {service, []client.Object{bound("blog", "apps/v1", "Deployment", "web", "west"), copyOf(bound("blog", "apps/v1", "Deployment", "web"), "west")}, false},
		"another Service leaves it, too":            {service, []client.Object{bound("shop", "v1", "Service", "api", "west"), copyOf(bound("shop", "v1", "Service", "api"), "west")}, false},
		"what nothing is known of leaves it, too":   {service, []client.Object{bound("shop", "example.org/v1", "Widget", "w", "west"), copyOf(bound("shop", "example.org/v1", "Widget", "w"), "west")}, true},
		"a Deployment waits for no other":           {web, []client.Object{bound("shop", "apps/v1", "Deployment", "api", "west"), copyOf(bound("shop", "apps/v1", "Deployment", "api"), "west")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.others...).Build()
			needed := inuse.Of(t.Context(), hub, tc.of)
			if got := needed != nil && needed("west"); got != tc.want {
				t.Errorf("it has to stay: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestEachLetGo: what was kept is looked at once what it was kept for has left.
func TestEachLetGo(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		bound("shop", "v1", "Service", "web", "west"), bound("shop", "v1", "ConfigMap", "web", "east", "west"), bound("shop", "v1", "ConfigMap", "stays"),
		bound("shop", "apps/v1", "Deployment", "api", "west"), bound("blog", "v1", "Service", "web", "west"),
	).Build()
	was := bound("shop", "apps/v1", "Deployment", "web", "east", "west")
	for name, tc := range map[string]struct {
		was, is *workv1alpha2.ResourceBinding
		want    []string
	}{
		"it leaves both":        {was, was, nil},
		"it has left one":       {was, bound("shop", "apps/v1", "Deployment", "web", "west"), []string{"ConfigMap web"}},
		"it has left the other": {was, bound("shop", "apps/v1", "Deployment", "web", "east"), []string{"ConfigMap web", "Service web"}},
		"it is gone":            {was, nil, []string{"ConfigMap web", "Service web"}},
		"a Service has left":    {bound("shop", "v1", "Service", "web", "west"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var is workv1alpha2.Binding
			if tc.is != nil {
				is = tc.is
			}
			var got []string
			inuse.EachLetGo(t.Context(), hub, tc.was, is, func(b workv1alpha2.Binding) {
				got = append(got, b.BindingSpec().Resource.Kind+" "+b.BindingSpec().Resource.Name)
			})
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("found %v, want %v", got, tc.want)
			}
		})
	}
}
