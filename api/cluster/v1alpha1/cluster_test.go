package v1alpha1

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAPIEnablement(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	listed := []APIEnablement{
		{GroupVersion: "apps/v1", Resources: []APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []APIResource{{Name: "pods", Kind: "Pod"}}},
	}
	complete := []metav1.Condition{{Type: ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue}}
	partial := []metav1.Condition{{Type: ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionFalse}}

	cases := map[string]struct {
		status ClusterStatus
		gvk    schema.GroupVersionKind
		want   APIEnablementStatus
	}{
		"listed":                              {ClusterStatus{APIEnablements: listed, Conditions: complete}, deployment, APIEnabled},
		"listed in a list that is not whole":  {ClusterStatus{APIEnablements: listed, Conditions: partial}, deployment, APIEnabled},
		"of the core group":                   {ClusterStatus{APIEnablements: listed}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, APIEnabled},
		"not in a whole list":                 {ClusterStatus{APIEnablements: listed, Conditions: complete}, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, APIDisabled},
		"another kind of a listed group":      {ClusterStatus{APIEnablements: listed, Conditions: complete}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, APIDisabled},
		"not in a list that is not whole":     {ClusterStatus{APIEnablements: listed, Conditions: partial}, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, APIUnknown},
		"nothing known of the cluster at all": {ClusterStatus{}, deployment, APIUnknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &Cluster{Status: c.status}
			if got := cluster.APIEnablement(c.gvk); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestProxyOptionsAreReadFromAQuery(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var got ClusterProxyOptions
	if err := runtime.NewParameterCodec(scheme).DecodeParameters(url.Values{"path": {"/api/v1/nodes"}}, GroupVersion, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ClusterProxyOptions{Path: "/api/v1/nodes"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
