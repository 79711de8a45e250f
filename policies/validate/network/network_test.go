package network

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	networkingv1alpha1 "github.com/flotilla-io/flotilla/api/networking/v1alpha1"
)

func TestIngress(t *testing.T) {
	ingress := func(spec string) string {
		return "metadata: {namespace: shop, name: i}\nspec: " + spec
	}
	path := func(p string) string {
		return ingress("{rules: [{http: {paths: [{" + p + ", backend: {service: {name: web, port: {number: 80}}}}]}}]}")
	}
	cases := map[string]struct {
		text string
		errs []string
	}{
		"an ingress":                                {text: ingress("{ingressClassName: nginx, tls: [{hosts: ['*.example.org']}], rules: [{host: '*.example.org', http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}, {pathType: ImplementationSpecific, backend: {resource: {apiGroup: a.b, kind: C, name: d}}}]}}]}")},
		"an ingress of nothing":                     {text: ingress("{}"), errs: []string{"spec: Invalid value"}},
		"an ingress without a type of path":         {text: path("path: /a"), errs: []string{"spec.rules[0].http.paths[0].pathType: Required value"}},
		"an ingress with an unknown type of path":   {text: path("path: /a, pathType: Near"), errs: []string{"spec.rules[0].http.paths[0].pathType: Unsupported value"}},
		"an ingress with a relative path":           {text: path("path: a, pathType: Exact"), errs: []string{"spec.rules[0].http.paths[0].path: Invalid value"}},
		"an ingress with a path that leads upwards": {text: path("path: /a/../b%2f/.., pathType: Prefix"), errs: []string{"spec.rules[0].http.paths[0].path: Invalid value", "spec.rules[0].http.paths[0].path: Invalid value", "spec.rules[0].http.paths[0].path: Invalid value"}},
		"an ingress with hosts that are none":       {text: ingress("{tls: [{hosts: [a_b]}], rules: [{host: 1.2.3.4}, {host: 'a.*'}, {http: {paths: []}}]}"), errs: []string{"spec.rules[0].host: Invalid value", "spec.rules[1].host: Invalid value", "spec.rules[2].http.paths: Required value", "spec.tls[0].hosts[0]: Invalid value"}},
		"an ingress with backends that are none":    {text: ingress("{defaultBackend: {}, rules: [{http: {paths: [{pathType: Exact, path: /, backend: {service: {name: '', port: {}}}}, {pathType: Exact, path: /, backend: {service: {name: A, port: {name: x_y, number: 1}}}}, {pathType: Exact, path: /, backend: {resource: {kind: '', name: a/b}}}]}}]}"), errs: []string{"spec.defaultBackend: Required value", "spec.rules[0].http.paths[0].backend.service.name: Required value", "spec.rules[0].http.paths[0].backend.service.port: Required value", "spec.rules[0].http.paths[1].backend.service.name: Invalid value", "spec.rules[0].http.paths[1].backend.service.port: Invalid value", "spec.rules[0].http.paths[2].backend.resource.kind: Required value", "spec.rules[0].http.paths[2].backend.resource.name: Invalid value"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs, warnings := Ingress(decode[networkingv1alpha1.MultiClusterIngress](t, tc.text))
			check(t, errs, warnings, tc.errs, nil)
		})
	}
}

func TestService(t *testing.T) {
	service := func(spec string) string {
		return "metadata: {namespace: shop, name: s}\nspec: " + spec
	}
	cases := map[string]struct {
		text, was string
		errs      []string
		warnings  []string // what they begin with
	}{
		"a service":                            {text: service("{types: [CrossCluster], ports: [{name: a, port: 80}, {name: b, port: 81}], providerClusters: [{name: a}], consumerClusters: [{name: b}]}")},
		"a service of two types and bad ports": {text: service("{types: [CrossCluster, Magic], ports: [{name: a, port: 0}, {name: a, port: 65536}], providerClusters: [{name: A}], consumerClusters: [{name: ''}]}"), errs: []string{"spec.types: Invalid value", "spec.types[1]: Unsupported value", "spec.ports[0].port: Invalid value", "spec.ports[1].port: Invalid value", "spec.ports[1].name: Duplicate value", "spec.providerClusters[0].name: Invalid value", "spec.consumerClusters[0].name: Required value"}},
		"a service in the old way":             {text: service("{types: [LoadBalancer], range: {clusterNames: [a]}, serviceProvisionClusters: [a], serviceConsumptionClusters: [a]}"), warnings: []string{"spec.range: is deprecated", "spec.serviceProvisionClusters: is deprecated", "spec.serviceConsumptionClusters: is deprecated"}},
		"a service whose type changes":         {text: service("{types: [LoadBalancer]}"), was: service("{types: [CrossCluster]}"), errs: []string{"spec.types: Forbidden"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old *networkingv1alpha1.MultiClusterService
			if tc.was != "" {
				old = decode[networkingv1alpha1.MultiClusterService](t, tc.was)
			}
			errs, warnings := Service(decode[networkingv1alpha1.MultiClusterService](t, tc.text), old)
			check(t, errs, warnings, tc.errs, tc.warnings)
		})
	}
}

// decode reads T from YAML, refusing unknown fields.
func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// check compares what a kind's errors are about, and what its warnings begin with.
func check(t *testing.T, errs field.ErrorList, warnings, wantErrs, wantWarnings []string) {
	t.Helper()
	var got []string
	for _, e := range errs {
		got = append(got, fmt.Sprintf("%s: %s", e.Field, e.Type))
	}
	if diff := cmp.Diff(wantErrs, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if len(warnings) != len(wantWarnings) {
		t.Fatalf("warnings: %q, want %q", warnings, wantWarnings)
	}
	for i, want := range wantWarnings {
		if !strings.HasPrefix(warnings[i], want) || len(warnings[i]) <= len(want) {
			t.Errorf("warning %q, want %q", warnings[i], want)
		}
	}
}
