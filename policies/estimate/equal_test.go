package estimate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-io/flotilla/policies/estimate"
)

func TestLoadsAreEqual(t *testing.T) {
	load := func(cpu string) estimate.Load {
		return estimate.Load{Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
	}
	cases := map[string]struct {
		a, b estimate.Load
		want bool
	}{
		"nothing and nothing":              {estimate.Load{}, estimate.Load{Resources: corev1.ResourceList{}}, true},
		"the same, written in another way": {load("1"), load("1000m"), true},
		"more":                             {load("1"), load("2"), false},
		"something and nothing":            {load("1"), estimate.Load{}, false},
		"as much of something else":        {load("1"), estimate.Load{Resources: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1")}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.a.Equal(tc.b) != tc.want || tc.b.Equal(tc.a) != tc.want {
				t.Errorf("equal = %v, want %v", !tc.want, tc.want)
			}
		})
	}
}
