package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// amount is the outcome of parsing a quantity.
type amount struct{ Text, Error string }

func amountOf(q resource.Quantity, err error) amount {
	if err != nil {
		return amount{Error: err.Error()}
	}
	return amount{Text: q.String()}
}

// TestQuantity checks that quantities are parsed, that what is none is an error
// that quotes it, and that those that take hours are refused before.
func TestQuantity(t *testing.T) {
	cases := map[string]struct {
		text string
		want amount
	}{
		"an amount":             {" 1500m ", amount{Text: "1500m"}},
		"binary":                {"2Gi", amount{Text: "2Gi"}},
		"decimal":               {"1e3", amount{Text: "1e3"}},
		"with a sign":           {"12e+06", amount{Text: "12e+06"}},
		"as many digits as may": {"1e18", amount{Text: "1e18"}},
		"exa, not a power":      {"1E", amount{Text: "1E"}},
		"a power too high":      {"1e999999999", amount{Error: `"1e999999999" is no quantity`}},
		"too low":               {"1E-999999999", amount{Error: `"1E-999999999" is no quantity`}},
		"too long":              {strings.Repeat("1", 49), amount{Error: `"` + strings.Repeat("1", 32) + `" is no quantity`}},
		"a word":                {"much", amount{Error: `"much" is no quantity`}},
		"nothing":               {"", amount{Error: `"" is no quantity`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, amountOf(rules.Quantity(tc.text))); diff != "" {
				t.Errorf("quantity (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMemory checks that the memory units of the JVM are powers of two, and that
// other texts are Kubernetes' quantities.
func TestMemory(t *testing.T) {
	cases := map[string]struct {
		text string
		unit int64
		want amount
	}{
		"a number of the given unit": {"512", 1 << 20, amount{Text: "512Mi"}},
		"bytes":                      {"100b", 1 << 20, amount{Text: "100"}},
		"one letter":                 {"2048m", 1, amount{Text: "2Gi"}},
		"two":                        {"1 GB", 1, amount{Text: "1Gi"}},
		"a word":                     {" 3 mebibytes ", 1, amount{Text: "3Mi"}},
		"kilobytes":                  {"1k", 1, amount{Text: "1Ki"}},
		"terabytes":                  {"1tb", 1, amount{Text: "1Ti"}},
		"petabytes":                  {"4096p", 1, amount{Text: "4Ei"}},
		"more than can be counted":   {"4097p", 1, amount{Error: `"4097p" is no amount of memory`}},
		"more than a number":         {strings.Repeat("9", 20), 1, amount{Error: `"99999999999999999999" is no amount of memory`}},
		"as Kubernetes writes it":    {"2Gi", 1, amount{Text: "2Gi"}},
		"a fraction":                 {"1.5g", 1, amount{Error: `"1.5g" is no quantity`}},
		"a unit without a number":    {"gb", 1, amount{Error: `"gb" is no amount of memory`}},
		"less than nothing":          {"-2Gi", 1, amount{Error: `"-2Gi" is less than no memory`}},
		"nothing":                    {"", 1, amount{Error: `"" is no amount of memory`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, amountOf(rules.Memory(tc.text, tc.unit))); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMost checks that the larger amount of each resource counts, and that neither
// list is changed.
func TestMost(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		if cpu != "" {
			out["cpu"] = resource.MustParse(cpu)
		}
		if memory != "" {
			out["memory"] = resource.MustParse(memory)
		}
		return out
	}
	cases := map[string]struct{ a, b, want corev1.ResourceList }{
		"each where it is larger": {list("2", "1Gi"), list("1500m", "2Gi"), list("2", "2Gi")},
		"what only one has":       {list("2", ""), list("", "2Gi"), list("2", "2Gi")},
		"nothing and something":   {nil, list("1", ""), list("1", "")},
		"something and nothing":   {list("1", ""), nil, list("1", "")},
		"nothing":                 {nil, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := tc.a.DeepCopy(), tc.b.DeepCopy()
			want := []corev1.ResourceList{tc.want, a, b}
			if diff := cmp.Diff(want, []corev1.ResourceList{rules.Most(tc.a, tc.b), tc.a, tc.b}); diff != "" {
				t.Errorf("most, and what was given (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTypedRefuses checks that a quantity that takes hours to parse is refused
// wherever a pod spec may have one, and that other texts may have any content.
func TestTypedRefuses(t *testing.T) {
	const huge = `"1e999999999"`
	cases := map[string]struct{ spec, want string }{
		"a request":           {`{containers: [{resources: {requests: {cpu: ` + huge + `}}}]}`, `requests.cpu: "1e999999999" is no quantity`},
		"a limit":             {`{initContainers: [{resources: {limits: {memory: ` + huge + `}}}]}`, `limits.memory: "1e999999999" is no quantity`},
		"an overhead":         {`{overhead: {cpu: ` + huge + `}}`, `overhead.cpu: "1e999999999" is no quantity`},
		"a limit of a volume": {`{volumes: [{name: v, emptyDir: {sizeLimit: ` + huge + `}}]}`, `"1e999999999" is no quantity`},
		"a divisor":           {`{containers: [{env: [{name: X, valueFrom: {resourceFieldRef: {divisor: ` + huge + `}}}]}]}`, `"1e999999999" is no quantity`},
		"within a list where none belongs": {
			`{containers: [{resources: {requests: [{limits: {cpu: ` + huge + `}}]}}]}`, `limits.cpu: "1e999999999" is no quantity`,
		},
		"a name":              {`{hostname: ` + huge + `, nodeSelector: {cpu: ` + huge + `}}`, ``},
		"amounts that are":    {`{containers: [{resources: {requests: {cpu: 1, memory: 1e9}}}]}`, ``},
		"what is not a thing": {`{containers: [{resources: {requests: much}}]}`, `cannot restore map from string`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, got := object(t, tc.spec).Object, ""
			if _, err := rules.Typed[corev1.PodSpec](spec); err != nil {
				got = err.Error()
			}
			dependencies := ""
			if _, err := rules.PodDependencies("ns", spec); err != nil {
				dependencies = strings.TrimPrefix(err.Error(), "pod spec: ")
			}
			if diff := cmp.Diff([2]string{tc.want, tc.want}, [2]string{got, dependencies}); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
