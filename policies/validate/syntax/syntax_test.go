package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

func TestValues(t *testing.T) {
	const invalid, required = "x: Invalid value", "x: Required value"
	on := func(check func(string, *field.Path) field.ErrorList, values ...string) func(*field.Path) field.ErrorList {
		return func(at *field.Path) (errs field.ErrorList) {
			for _, v := range values {
				errs = append(errs, check(v, at)...)
			}
			return errs
		}
	}
	port := func(numbers ...int32) func(*field.Path) field.ErrorList {
		return func(at *field.Path) (errs field.ErrorList) {
			for _, n := range numbers {
				errs = append(errs, Port(n, at)...)
			}
			return errs
		}
	}
	selector := func(s *metav1.LabelSelector) func(*field.Path) field.ErrorList {
		return func(at *field.Path) field.ErrorList { return LabelSelector(s, at) }
	}
	cases := map[string]struct {
		check func(*field.Path) field.ErrorList
		want  []string
	}{
		"keys of labels":                           {check: on(LabelName, "a", "example.org/a.b_c")},
		"keys that are none":                       {check: on(LabelName, "", "a b"), want: []string{invalid, invalid, invalid}},
		"values of labels":                         {check: on(LabelValue, "", "a.b_c")},
		"a value that is none":                     {check: on(LabelValue, "a/b"), want: []string{invalid}},
		"no selector":                              {check: selector(nil)},
		"a selector":                               {check: selector(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})},
		"a selector that asks for nothing":         {check: selector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}}), want: []string{"x.matchExpressions[0].values: Required value"}},
		"names of clusters":                        {check: on(ClusterName, "eu-1", strings.Repeat("a", clusterv1alpha1.ClusterNameMaxLength))},
		"no name of a cluster":                     {check: on(ClusterName, ""), want: []string{required}},
		"a name with a dot, which other names may": {check: on(ClusterName, "eu.1"), want: []string{invalid}},
		"a name that is too long for a cluster":    {check: on(ClusterName, strings.Repeat("a", clusterv1alpha1.ClusterNameMaxLength+1)), want: []string{"x: Too long"}},
		"segments of a path":                       {check: on(Segment, "system:admin", "a..b")},
		"segments that are none":                   {check: on(Segment, "", "a/b", ".."), want: []string{required, invalid, invalid}},
		"versions":                                 {check: on(APIVersion, "v1", "apps/v1")},
		"versions that are none":                   {check: on(APIVersion, "", "apps/", "/v1", "a/b/c"), want: []string{required, invalid, invalid, invalid}},
		"ports":                                    {check: port(1, 65535)},
		"ports that are none":                      {check: port(0, -1, 65536), want: []string{invalid, invalid, invalid}},
		"the name of a port":                       {check: on(PortName, "http-2")},
		"one that is longer than fifteen":          {check: on(PortName, "a-name-of-a-port"), want: []string{invalid}},
		"DNS names":                                {check: on(Subdomain, "a", "a.b-c.d")},
		"a wildcard is no DNS name":                {check: on(Subdomain, "*.a.b"), want: []string{invalid}},
		"but a host":                               {check: on(Host, "*.a.b", "a.b")},
		"where it is the whole first label":        {check: on(Host, "a.*", "a_b"), want: []string{invalid, invalid}},
		"the name of a Service":                    {check: on(Label, "web-1")},
		"no name, and one that begins with digits": {check: on(Label, "", "1web"), want: []string{required, invalid}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range tc.check(field.NewPath("x")) {
				got = append(got, fmt.Sprintf("%s: %s", e.Field, e.Type))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdvise(t *testing.T) {
	got := Advise(field.NewPath("spec").Child("types").Index(1), "%s is unwise: use %s", "a", "b")
	if want := "spec.types[1]: a is unwise: use b"; got != want {
		t.Errorf("advised %q, want %q", got, want)
	}
}
