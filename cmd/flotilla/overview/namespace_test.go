package overview

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// A script that waits for a namespace to be ready must not take a mistyped one for
// it.
func TestStatusOfOneNamespace(t *testing.T) {
	namespace := func(name string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	template := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"},
		Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
		}},
	}
	claimed(template)
	const nothing = "There is no source, no Kustomization and no template in namespace empty.\n"
	cases := map[string]struct {
		namespace string
		forbidden bool // to read namespaces
		text      string
		err       string // of the reading
		verdict   string // of --check
	}{
		"one that does not exist is named, with what to do": {
			namespace: "typo", err: "there is no namespace typo on the control plane: flotilla get namespaces lists those that there are",
		},
		"an empty one is ready, and says that there is nothing": {
			namespace: "empty", text: "All is ready: clusters 0/0, sources 0/0, Kustomizations 0/0, templates 0/0.\n" + nothing,
		},
		"one with a template says what is not ready": {
			namespace: "shop", text: "1 thing is not ready: ", verdict: "1 thing is not ready: see above",
		},
		"all of them are no namespace that could be missing": {
			namespace: "", text: "1 thing is not ready: ", verdict: "1 thing is not ready: see above",
		},
		"who may not read namespaces still sees what is in one": {
			namespace: "shop", forbidden: true, text: "1 thing is not ready: ", verdict: "1 thing is not ready: see above",
		},
		"who may not read namespaces is not told that an empty one is ready": {
			namespace: "typo", forbidden: true,
			text:    "What you may read is ready: clusters 0/0, sources 0/0, Kustomizations 0/0, templates 0/0.\nYou may not read Namespaces: nothing is said of them.\n",
			verdict: "nobody knows: you may not read Namespaces",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(namespace("shop"), namespace("empty"), template).
				WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if _, ok := obj.(*corev1.Namespace); ok && tc.forbidden {
						return apierrors.NewForbidden(corev1.Resource("namespaces"), key.Name, nil)
					}
					return hub.Get(ctx, key, obj, opts...)
				}}).Build()
			found, err := surveyOf(t.Context(), hub, tc.namespace, false, time.Now())
			if diff := cmp.Diff(tc.err, textOf(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.verdict, textOf(verdict(found))); diff != "" {
				t.Errorf("--check (-want +got):\n%s", diff)
			}
			var out bytes.Buffer
			if err := found.Text(&out, situation.TextOptions{Now: time.Now()}); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out.String(), tc.text) {
				t.Errorf("it says\n%s\nwant\n%s", out.String(), tc.text)
			}
		})
	}
}

// TestClaimsOfOtherNamespaces: the status of one namespace says of a claim that was moved off a cluster what that of all says.
func TestClaimsOfOtherNamespaces(t *testing.T) {
	claim := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "files-persistentvolumeclaim"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "files"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "east"}},
		},
	}
	claimed(claim)
	west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	west.Status.Conditions = []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"},
		{Type: clusterv1alpha1.ClusterConditionOrphansFound, Status: metav1.ConditionTrue, Message: "1 object that no Work names: PersistentVolumeClaim shop/files (with its data); look"},
		{Type: clusterv1alpha1.ClusterConditionClaimsKept, Status: metav1.ConditionTrue, Message: volumes.Staying([]types.NamespacedName{{Namespace: "shop", Name: "files"}})},
	}
	for name, tc := range map[string]struct {
		namespace string
		forbidden bool // to read what is in shop
		problems  int  // of the cluster
		want      []string
	}{
		"of all":                           {want: []string{"shop/files: it stays in west with its data, although its template is placed elsewhere"}},
		"of its own namespace":             {namespace: "shop", want: []string{"shop/files: it stays in west with its data, although its template is placed elsewhere"}},
		"of another one":                   {namespace: "flux-system", want: []string{"shop/files: it stays in west with its data, although its template is placed elsewhere"}},
		"of another one, and may not know": {namespace: "flux-system", forbidden: true, problems: 1},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(claim.DeepCopy(), west.DeepCopy(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flux-system"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).
				WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if key.Namespace == "shop" && tc.forbidden {
						return apierrors.NewForbidden(corev1.Resource("resourcebindings"), key.Name, nil)
					}
					return hub.Get(ctx, key, obj, opts...)
				}}).Build()
			found, err := surveyOf(t.Context(), hub, tc.namespace, false, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range found.Notes {
				if n.Kind == "PersistentVolumeClaim" {
					got = append(got, n.Namespace+"/"+n.Name+": "+n.Message)
				}
			}
			problems := 0
			for _, p := range found.Problems {
				if p.Kind == "Cluster" {
					problems++
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || problems != tc.problems {
				t.Errorf("%d problems of the cluster, want %d; notes (-want +got):\n%s", problems, tc.problems, diff)
			}
		})
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
