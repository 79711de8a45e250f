package promotion_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/change/promotion"
)

// forbidden is a refusal with a reason.
func forbidden(resource, name, why string) error {
	return apierrors.NewForbidden(schema.ParseGroupResource(resource), name, errors.New(why))
}

// served is a cluster that is ready and has Deployments.
func served() *clusterv1alpha1.Cluster {
	east := cluster()
	east.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	meta.SetStatusCondition(&east.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue})
	return east
}

// TestACordonedCluster: the error has the next step, and does not mention other clusters.
func TestACordonedCluster(t *testing.T) {
	east := served()
	east.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterUnscheduler, Effect: corev1.TaintEffectNoSchedule}}
	o := options(side(interceptor.Funcs{}, namespace(), east), side(interceptor.Funcs{}, namespace(), deployment(nil)))
	o.Unrehearsed, o.Dependencies = false, false
	_, err := promotion.Plan(t.Context(), web, o)
	if want := "Deployment shop/web would not run in cluster east, which is cordoned: flotilla uncordon east"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestRefusalsOfTheMember: who lacks a right goes on without a rehearsal, and what the
// cluster does not admit is not promoted. Both are answered with 403.
func TestRefusalsOfTheMember(t *testing.T) {
	const noted = "what would change in cluster east was not rehearsed: you may not write Deployment shop/web there"
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "audit.example.com" denied the request: User "eve" cannot have it`,
	}}
	for name, tc := range map[string]struct {
		refused error
		passes  bool
	}{
		"the user may not patch it": {forbidden("deployments.apps", "web", `User "eve" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`), true},
		"the user may not patch it, and is told why": {forbidden("deployments.apps", "web",
			`User "eve" cannot patch resource "deployments" in API group "apps" in the namespace "shop": requires one of ["deployments.update"]`), true},
		"the control plane does not pass it on": {forbidden("clusters.cluster.karmada.io", "east",
			`User "eve" cannot patch resource "clusters/proxy" in API group "cluster.karmada.io" at the cluster scope`), true},
		"the user may not hand on such rights": {forbidden("roles.rbac.authorization.k8s.io", "web",
			`user "eve" (groups=["dev"]) is attempting to grant RBAC permissions not currently held:`+"\n{...}"), true},
		"a quota is used up":          {forbidden("deployments.apps", "web", "exceeded quota: shop, requested: count/deployments.apps=1"), false},
		"PodSecurity does not let it": {forbidden("pods", "web", `violates PodSecurity "restricted:latest": privileged`), false},
		"a policy does not let it":    {forbidden("deployments.apps", "web", `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), false},
		"a webhook does not let it":   {webhook, false},
	} {
		t.Run(name, func(t *testing.T) {
			east := served()
			o := options(side(interceptor.Funcs{}, namespace(), east), side(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.refused
				},
			}, namespace(), deployment(nil)))
			o.Unrehearsed, o.Dependencies = false, false
			p, err := promotion.Plan(t.Context(), web, o)
			if tc.passes {
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(p.Notes, "\n"); got != noted {
					t.Errorf("notes %q", got)
				}
				return
			}
			if want := fmt.Sprintf("cluster east would not take Deployment shop/web: %v", tc.refused); err == nil || err.Error() != want {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}
