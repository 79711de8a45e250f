package profile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// add adds so many nodes to the index.
func add(x *nodes.Index, prefix string, count int, free corev1.ResourceList, edits ...func(i int, n *nodes.Node)) {
	for i := range count {
		name := fmt.Sprintf("%s-%04d", prefix, i)
		n := &nodes.Node{Name: name, Labels: map[string]string{corev1.LabelHostname: name}, Allocatable: nodes.AmountsOf(free)}
		for _, edit := range edits {
			edit(i, n)
		}
		x.Node(name, n)
	}
}

func labelled(key string, value func(i int) string) func(int, *nodes.Node) {
	return func(i int, n *nodes.Node) { n.Labels[key] = value(i) }
}

func always(value string) func(int) string { return func(int) string { return value } }

func tainted(key string) func(int, *nodes.Node) {
	return func(_ int, n *nodes.Node) {
		n.Taints = nodes.TaintsOf(&corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}})
	}
}

func quotaOf(pairs ...string) *nodes.Quota {
	return &nodes.Quota{Free: nodes.AmountsOf(list(pairs...))}
}

func needs(pairs ...string) *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{Namespace: "shop", ResourceRequest: list(pairs...)}
}

func on(need *workv1alpha2.ReplicaRequirements, c workv1alpha2.NodeClaim) *workv1alpha2.ReplicaRequirements {
	need.NodeClaim = &c
	return need
}

// fits counts by a profile, or says why it does not.
func fits(t *testing.T, p *Profile, need *workv1alpha2.ReplicaRequirements, assumed ...estimate.Assumed) string {
	t.Helper()
	ask, err := nodes.AskForReplicas(need, assumed)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Answers(ask); err != nil {
		return err.Error()
	}
	return fmt.Sprint(nodes.Most(p.Index(), ask, nodes.Resources{}, nodes.Quotas{}))
}

// TestText is what an agent sends about a small cluster.
func TestText(t *testing.T) {
	x := &nodes.Index{}
	zone := func(name string) func(int, *nodes.Node) { return labelled("zone", always(name)) }
	add(x, "a", 2, list("cpu", "4", "memory", "8100Mi", "pods", "110", "nvidia.com/gpu", "0"), zone("east"))
	add(x, "b", 1, list("cpu", "3995m", "memory", "8Gi", "pods", "110"), zone("east"))
	add(x, "c", 1, list("cpu", "16", "memory", "64Gi", "pods", "110"), zone("west"), tainted("dedicated"))
	add(x, "full", 1, list("cpu", "16", "memory", "64Gi", "pods", "0"), zone("north"))
	x.Pod(nil, &nodes.Pod{Namespace: "shop", Name: "one", Node: "a-0000", Requests: nodes.AmountsOf(list("cpu", "5"))})
	x.Quota("shop", "q", quotaOf("cpu", "2"))
	x.Quota("books", "q", quotaOf("cpu", "2"))
	x.Quota("books", "gold", &nodes.Quota{Free: nodes.AmountsOf(list("memory", "1Gi")), Scopes: []nodes.Scope{{Operator: corev1.ScopeSelectorOpIn, Values: []string{"gold"}}}})
	want := strings.Join([]string{
		`{"version":1,"resources":["cpu","memory","pods"],"kinds":[`,
		`{"labels":{"zone":"east"},"rows":[[1,0,8321499136,105],[1,3800,8589934592,110],[1,4000,8321499136,110]]},`,
		`{"labels":{"zone":"west"},"taints":[{"key":"dedicated","effect":"NoSchedule"}],"rows":[[1,16000,68719476736,110]]}`,
		`],"omitted":["kubernetes.io/hostname"],"quotas":[`,
		`{"namespaces":["books","shop"],"free":{"cpu":2000}},`,
		`{"namespaces":["books"],"free":{"memory":1073741824},"scopes":[{"operator":"In","values":["gold"]}]}]}`,
	}, "")
	p := Of(x)
	if diff := cmp.Diff(want, string(p.Encode())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := Decode(p.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

func TestAnswers(t *testing.T) {
	x := &nodes.Index{}
	zone := labelled("zone", func(i int) string { return fmt.Sprint("z", i%2) })
	add(x, "small", 4, list("cpu", "1", "pods", "110"), zone)
	add(x, "large", 1, list("cpu", "8", "pods", "3"), tainted("dedicated"))
	add(x, "many", 80, list("pods", "110"), labelled("instance", func(i int) string { return fmt.Sprint("i", i) }))
	x.Quota("limited", "q", quotaOf("cpu", "2"))
	dedicated := []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	affinity := func(r corev1.NodeSelectorRequirement, field bool) *corev1.NodeSelector {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}}
		if field {
			term = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{r}}
		}
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
	}
	limited := needs("cpu", "1")
	limited.Namespace = "limited"
	claims := func(c workv1alpha2.NodeClaim) *workv1alpha2.ReplicaRequirements { return on(needs("cpu", "1"), c) }
	pinned := estimate.Assumed{Components: []workv1alpha2.Component{estimate.ComponentOf(claims(workv1alpha2.NodeClaim{NodeSelector: map[string]string{corev1.LabelHostname: "small-0000"}}))}}
	const hostname = "the cluster does not tell of its nodes what that depends on: the label kubernetes.io/hostname"
	cases := map[string]struct {
		need    *workv1alpha2.ReplicaRequirements
		assumed []estimate.Assumed
		want    string
	}{
		"each small node takes one of a core":      {need: needs("cpu", "1"), want: "4"},
		"none takes one of two, whatever the sum":  {need: needs("cpu", "2"), want: "0"},
		"who tolerates it gets the large node":     {need: claims(workv1alpha2.NodeClaim{Tolerations: dedicated}), want: "7"},
		"a node selector":                          {need: claims(workv1alpha2.NodeClaim{NodeSelector: map[string]string{"zone": "z1"}}), want: "2"},
		"a label that no node has":                 {need: claims(workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "ssd"}}), want: "0"},
		"an affinity":                              {need: claims(workv1alpha2.NodeClaim{HardNodeAffinity: affinity(corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpDoesNotExist}, false), Tolerations: dedicated}), want: "3"},
		"a quota":                                  {need: limited, want: "2"},
		"what was placed takes room":               {need: needs("cpu", "1"), assumed: []estimate.Assumed{{Components: []workv1alpha2.Component{estimate.ComponentOf(needs("cpu", "1"))}}}, want: "3"},
		"a resource that no node has":              {need: needs("nvidia.com/gpu", "1"), want: "0"},
		"a hostname is not known":                  {need: claims(workv1alpha2.NodeClaim{NodeSelector: map[string]string{corev1.LabelHostname: "small-0000"}}), want: hostname},
		"nor one that is to be another":            {need: claims(workv1alpha2.NodeClaim{HardNodeAffinity: affinity(corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"x"}}, false)}), want: hostname},
		"nor where what was placed needs one":      {need: needs("cpu", "1"), assumed: []estimate.Assumed{pinned}, want: hostname},
		"nor another label that tells nodes apart": {need: claims(workv1alpha2.NodeClaim{NodeSelector: map[string]string{"instance": "i7"}}), want: strings.Replace(hostname, corev1.LabelHostname, "instance", 1)},
		"nor the name of a node": {
			need: claims(workv1alpha2.NodeClaim{HardNodeAffinity: affinity(corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"small-0000"}}, true)}),
			want: "the cluster does not tell of its nodes what that depends on: the names of its nodes",
		},
	}
	p := Of(x)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fits(t, p, tc.need, tc.assumed...); got != tc.want {
				t.Errorf("= %s, want %s", got, tc.want)
			}
		})
	}
}

// TestItFits has more and more to tell, and looks at what is left of it.
func TestItFits(t *testing.T) {
	type outcome struct {
		Fits, Omitted string
		Nodes, Left   int64
		Rows          int
		Unreported    bool
	}
	varied := func(i int, n *nodes.Node) {
		n.Allocatable = nodes.AmountsOf(list("cpu", fmt.Sprint(1000+i*37%15000, "m"), "memory", fmt.Sprint(1024+i*91%63000, "Mi"), "pods", fmt.Sprint(1+i%110)))
	}
	free := list("cpu", "4", "memory", "8Gi", "pods", "110")
	long := strings.Repeat("x", 60)
	cases := map[string]struct {
		fill func(x *nodes.Index)
		want outcome
	}{
		"no nodes": {
			fill: func(*nodes.Index) {},
			want: outcome{Fits: "0"},
		},
		"5,000 equal nodes are one row": {
			fill: func(x *nodes.Index) { add(x, "n", 5000, free) },
			want: outcome{Fits: "20000", Omitted: "[kubernetes.io/hostname]", Nodes: 5000, Rows: 1},
		},
		"5,000 nodes that differ are told coarser": {
			fill: func(x *nodes.Index) { add(x, "n", 5000, free, varied) },
			want: outcome{Fits: "36401", Omitted: "[kubernetes.io/hostname]", Nodes: 5000, Rows: 1324},
		},
		"kinds that are too many lose the labels with the most values": {
			fill: func(x *nodes.Index) {
				add(x, "n", 5000, free, varied,
					labelled("rack", func(i int) string { return fmt.Sprint(i % 60) }), labelled("zone", func(i int) string { return fmt.Sprint(i % 7) }), labelled("pool", always(long)))
			},
			want: outcome{Fits: "29628", Omitted: "[kubernetes.io/hostname rack]", Nodes: 5000, Rows: 928},
		},
		"labels that are too long are not told": {
			fill: func(x *nodes.Index) {
				add(x, "n", 9, free)
				for i := range 600 {
					add(x, "n", 9, free, labelled(fmt.Sprint("key-", i), always(long)), func(_ int, n *nodes.Node) {
						for j := range i {
							n.Labels[fmt.Sprint("key-", j)] = long
						}
					})
				}
			},
			want: outcome{Fits: "36", Omitted: "257 keys", Nodes: 9, Rows: 1},
		},
		"taints that are too many leave nodes out": {
			fill: func(x *nodes.Index) {
				add(x, "n", 9, free)
				for i := range 1000 {
					add(x, fmt.Sprint("t", i), 1, free, tainted(fmt.Sprint(long, i)))
				}
			},
			want: outcome{Fits: "36", Omitted: "[*]", Nodes: 133, Left: 876, Rows: 125},
		},
		"resources whose names are too long": {
			fill: func(x *nodes.Index) {
				free := list("cpu", "4", "pods", "110")
				for i := range 120 {
					free[corev1.ResourceName(strings.Repeat("x", 250)+fmt.Sprint("/", i, long))] = resource.MustParse("1")
				}
				add(x, "n", 9, free)
			},
			want: outcome{Fits: "0", Omitted: "[*]", Left: 9},
		},
		"quotas of many namespaces": {
			fill: func(x *nodes.Index) {
				add(x, "n", 9, free)
				for i := range 500 {
					x.Quota(fmt.Sprint("team-", i), "q", quotaOf("cpu", fmt.Sprint(i, "m")))
				}
			},
			want: outcome{Fits: "36", Omitted: "[kubernetes.io/hostname]", Nodes: 9, Rows: 1},
		},
		"quotas of too many namespaces": {
			fill: func(x *nodes.Index) {
				add(x, "n", 9, free)
				for i := range 5000 {
					x.Quota(fmt.Sprint("team-", i), "q", quotaOf("cpu", fmt.Sprint(i, "m")))
				}
			},
			want: outcome{Fits: ErrUnreported.Error() + ": the quotas of the namespace shop", Omitted: "[kubernetes.io/hostname]", Nodes: 9, Rows: 1, Unreported: true},
		},
		"nodes that are too many": {
			fill: func(x *nodes.Index) { add(x, "n", mostNodes+5, list("cpu", "1", "pods", "110")) },
			want: outcome{Fits: "20000", Omitted: "[kubernetes.io/hostname]", Nodes: mostNodes, Left: 5, Rows: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := &nodes.Index{}
			tc.fill(x)
			text := Of(x).Encode()
			p, err := Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			got := outcome{Fits: fits(t, p, needs("cpu", "1")), Nodes: p.Nodes(), Left: p.LeftOut, Unreported: p.QuotasOmitted}
			switch n := len(p.Omitted); {
			case n > 5:
				got.Omitted = fmt.Sprint(n, " keys")
			case n > 0:
				got.Omitted = fmt.Sprint(p.Omitted)
			}
			for i := range p.Kinds {
				got.Rows += len(p.Kinds[i].Rows)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%d bytes (-want +got):\n%s", len(text), diff)
			}
		})
	}
}

func TestDown(t *testing.T) {
	var got []string
	for _, of := range []struct {
		name  corev1.ResourceName
		q     string
		parts int64
	}{
		{"cpu", "0", 16}, {"cpu", "9m", 16}, {"cpu", "159m", 16}, {"cpu", "1", 16}, {"cpu", "3999m", 16}, {"cpu", "15890m", 16}, {"cpu", "15890m", 1},
		{"memory", "15Mi", 16}, {"memory", "500Mi", 16}, {"memory", "32780496Ki", 16}, {"memory", "32780496Ki", 2},
		{"pods", "7", 16}, {"pods", "103", 16}, {"nvidia.com/gpu", "7", 4}, {"hugepages-2Mi", "6Mi", 16}, {"x/y", "1125899906842624", 16},
	} {
		q := resource.MustParse(of.q)
		got = append(got, fmt.Sprintf("%s %s/%d %d", of.name, of.q, of.parts, down(of.name, estimate.Amount(of.name, &q), of.parts)))
	}
	want := []string{
		"cpu 0/16 0", "cpu 9m/16 0", "cpu 159m/16 150", "cpu 1/16 1000", "cpu 3999m/16 3800", "cpu 15890m/16 15500", "cpu 15890m/1 10000",
		"memory 15Mi/16 0", "memory 500Mi/16 520093696", "memory 32780496Ki/16 33285996544", "memory 32780496Ki/2 25769803776",
		"pods 7/16 7", "pods 103/16 100", "nvidia.com/gpu 7/4 7", "hugepages-2Mi 6Mi/16 6291456", "x/y 1125899906842624/16 1100000000000000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMore(t *testing.T) {
	profileOf := func(fill func(x *nodes.Index)) *Profile {
		x := &nodes.Index{}
		fill(x)
		return Of(x)
	}
	cpus := func(cpus ...string) func(x *nodes.Index) {
		return func(x *nodes.Index) {
			for i, cpu := range cpus {
				add(x, fmt.Sprint(i), 1, list("cpu", cpu, "pods", "9"))
			}
		}
	}
	both := func(cpu, memory string) func(x *nodes.Index) {
		return func(x *nodes.Index) { add(x, cpu, 1, list("cpu", cpu, "memory", memory, "pods", "9")) }
	}
	with := func(edit func(int, *nodes.Node)) func(x *nodes.Index) {
		return func(x *nodes.Index) { add(x, "n", 1, list("cpu", "1", "pods", "9"), edit) }
	}
	limited := func(pairs ...string) func(x *nodes.Index) {
		return func(x *nodes.Index) { x.Quota("shop", "q", quotaOf(pairs...)) }
	}
	all := func(fills ...func(x *nodes.Index)) func(x *nodes.Index) {
		return func(x *nodes.Index) {
			for _, fill := range fills {
				fill(x)
			}
		}
	}
	cases := map[string]struct {
		was, is func(x *nodes.Index)
		want    bool
	}{
		"nothing new":                        {was: cpus("4", "2"), is: cpus("4", "2")},
		"a node has more":                    {was: cpus("4", "2"), is: cpus("4", "3"), want: true},
		"a node has less":                    {was: cpus("4", "2"), is: cpus("4", "1")},
		"one more node":                      {was: cpus("4"), is: cpus("4", "1"), want: true},
		"one node less":                      {was: cpus("4", "1"), is: cpus("4")},
		"one large instead of two small":     {was: cpus("2", "2"), is: cpus("4", "0"), want: true},
		"two small instead of one large":     {was: cpus("4", "0"), is: cpus("2", "2"), want: true},
		"what is free of a node is together": {was: all(both("4", "1Gi"), both("1", "4Gi")), is: all(both("4", "4Gi"), both("1", "1Gi")), want: true},
		"a taint goes":                       {was: with(tainted("x")), is: with(func(int, *nodes.Node) {}), want: true},
		"a label comes":                      {was: with(func(int, *nodes.Node) {}), is: with(labelled("a", always("b"))), want: true},
		"a new resource":                     {was: cpus("4"), is: both("4", "4Gi"), want: true},
		"a quota leaves more":                {was: limited("cpu", "1"), is: limited("cpu", "2"), want: true},
		"a quota leaves less":                {was: limited("cpu", "2"), is: limited("cpu", "1")},
		"a quota goes":                       {was: limited("cpu", "1", "memory", "1Gi"), is: limited("memory", "1Gi"), want: true},
		"a quota comes":                      {was: limited("cpu", "1"), is: limited("cpu", "1", "memory", "1Gi")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := More(profileOf(tc.was), profileOf(tc.is)); got != tc.want {
				t.Errorf("= %t, want %t", got, tc.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	cases := map[string]struct{ text, says string }{
		"what is no JSON":             {"x", "invalid character"},
		"nothing":                     {"", "unexpected end of JSON input"},
		"another version":             {`{"version":2}`, "its version is 2, and 1 is known"},
		"a field of a later version":  {`{"version":1,"topology":{}}`, "unknown field"},
		"a field twice":               {`{"version":1,"leftOut":1,"leftOut":2}`, "duplicate field"},
		"a field in other letters":    {`{"version":1,"leftout":1}`, "unknown field"},
		"a quota's resource twice":    {`{"version":1,"quotas":[{"namespaces":["a"],"free":{"cpu":1,"cpu":2}}]}`, "duplicate field"},
		"two of them":                 {`{"version":1}{"version":1}`, "after top-level value"},
		"too many bytes":              {`{"version":1}` + strings.Repeat(" ", MostBytes), "it has 32781 bytes, and may have 32768"},
		"room that is less than none": {`{"version":1,"resources":["cpu"],"kinds":[{"rows":[[1,-1]]}]}`, "kinds[0]: -1 is free"},
		"room that no node has":       {`{"version":1,"resources":["cpu"],"kinds":[{"rows":[[1,1125899906842625]]}]}`, "1125899906842625 is free"},
		"a row without nodes":         {`{"version":1,"resources":["cpu"],"kinds":[{"rows":[[0,1]]}]}`, "there are 0 nodes in a row"},
		"too many nodes in a row":     {`{"version":1,"resources":["cpu"],"kinds":[{"rows":[[20001,1]]}]}`, "there are 20001 nodes in a row"},
		"too many nodes":              {`{"version":1,"resources":["cpu"],"kinds":[{"rows":[[20000,1],[1,1]]}]}`, "it tells of 20001 nodes and 1 resources, which is too much"},
		"more nodes than are counted": {`{"version":1,"kinds":[{"rows":[[9223372036854775807]]}]}`, "there are 9223372036854775807 nodes in a row"},
		"a number that is none":       {`{"version":1,"resources":["cpu"],"kinds":[{"rows":[[1,1e99]]}]}`, "cannot unmarshal number"},
		"numbers of no resource":      {`{"version":1,"resources":["cpu"],"kinds":[{"rows":[[1,1,1]]}]}`, "a row has 3 numbers, of 1 resources"},
		"an empty row":                {`{"version":1,"kinds":[{"rows":[[]]}]}`, "a row has 0 numbers, of 0 resources"},
		"a resource twice":            {`{"version":1,"resources":["cpu","cpu"]}`, `it names the resource "cpu" twice`},
		"a mere preference":           {`{"version":1,"kinds":[{"taints":[{"key":"a","effect":"PreferNoSchedule"}],"rows":[]}]}`, `the taint a has the effect "PreferNoSchedule"`},
		"nodes left out, less than 0": {`{"version":1,"leftOut":-1}`, "leftOut is negative"},
		"a quota that leaves less":    {`{"version":1,"quotas":[{"namespaces":["a"],"free":{"cpu":-1}}]}`, "quotas[0]: -1 is free"},
		"a scope that is not known":   {`{"version":1,"quotas":[{"namespaces":["a"],"free":{"cpu":1},"scopes":[{"operator":"Like"}]}]}`, `a scope has the operator "Like"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tc.text))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("= %v, want %q", err, tc.says)
			}
		})
	}
}

// FuzzDecode reads what anybody may have written, and asks it.
func FuzzDecode(f *testing.F) {
	x := &nodes.Index{}
	add(x, "a", 2, list("cpu", "4", "pods", "110"), labelled("zone", always("east")), tainted("dedicated"))
	x.Quota("shop", "q", quotaOf("cpu", "2"))
	f.Add(Of(x).Encode())
	f.Add([]byte(`{"version":1,"resources":["cpu"],"kinds":[{"rows":[[20000,1],[1,1]]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Decode(text)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		fits(t, p, needs("cpu", "1"))
		More(p, p)
		again, err := Decode(p.Encode())
		if err != nil && len(p.Encode()) <= MostBytes {
			t.Fatalf("what it says is not read again: %v", err)
		}
		if err == nil && string(again.Encode()) != string(p.Encode()) {
			t.Error("it is another one when it is read again")
		}
	})
}
