package builder

import (
	"errors"
	"fmt"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/build"
)

// components are what a bootstrapped repository holds to install Flux, cut to one object of each sort.
const components = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {app.kubernetes.io/instance: %[1]s, app.kubernetes.io/part-of: flux}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kustomizations.kustomize.toolkit.fluxcd.io, labels: {app.kubernetes.io/instance: %[1]s, app.kubernetes.io/part-of: flux}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io, labels: {app.kubernetes.io/instance: %[1]s, app.kubernetes.io/part-of: flux}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: cluster-reconciler-%[1]s, labels: {app.kubernetes.io/instance: %[1]s, app.kubernetes.io/part-of: flux}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: %[1]s, labels: {app.kubernetes.io/instance: %[1]s, app.kubernetes.io/part-of: flux}}
`

const application = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
`

// TestWhatInstallsFluxIsLeftOut builds what flux bootstrap commits, with an application beside it.
func TestWhatInstallsFluxIsLeftOut(t *testing.T) {
	cases := map[string]struct {
		files string
		want  []string
		err   error
	}{
		"an application beside it": {fmt.Sprintf(components, "flux-system") + "---" + application, []string{
			"CustomResourceDefinition/gadgets.example.com", "CustomResourceDefinition/helmreleases.helm.toolkit.fluxcd.io", "Deployment/shop/web",
		}, nil},
		"it is to install Flux elsewhere": {fmt.Sprintf(components, "fleet-flux"), []string{
			"CustomResourceDefinition/helmreleases.helm.toolkit.fluxcd.io", "Namespace/fleet-flux", "ClusterRoleBinding/cluster-reconciler-fleet-flux", "Deployment/fleet-flux/kustomize-controller",
		}, nil},
		"a definition of the control plane's alone": {`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: propagationpolicies.policy.karmada.io}
`, nil, build.ErrEmpty},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := Input{Kustomization: &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "flux-system"}}}
			objects, err := FromFiles(t.Context(), build.New(build.Limits{}), build.NewTree(map[string][]byte{"all.yaml": []byte(tc.files)}), in)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			var got []string
			for _, obj := range objects {
				got = append(got, inventory.Describe(inventory.IDOf(obj)))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
