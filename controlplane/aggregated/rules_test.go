package aggregated

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clusterWith(change func(*clusterv1alpha1.ClusterSpec)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "eu-1"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://10.0.0.1:6443"},
	}
	change(&c.Spec)
	return c
}

func model(grade uint, ranges ...string) clusterv1alpha1.ResourceModel {
	m := clusterv1alpha1.ResourceModel{Grade: grade}
	for _, text := range ranges {
		parts := strings.Fields(text)
		m.Ranges = append(m.Ranges, clusterv1alpha1.ResourceModelRange{
			Name: corev1.ResourceName(parts[0]), Min: resource.MustParse(parts[1]), Max: resource.MustParse(parts[2]),
		})
	}
	return m
}

func TestPrepare(t *testing.T) {
	earlier := metav1.NewTime(now.Add(-time.Hour))
	stamped := metav1.NewTime(now)
	cases := map[string]struct {
		spec     clusterv1alpha1.ClusterSpec
		creating bool
		want     clusterv1alpha1.ClusterSpec
	}{
		"moves a zone to zones": {
			spec: clusterv1alpha1.ClusterSpec{Zone: "a"},
			want: clusterv1alpha1.ClusterSpec{Zones: []string{"a"}},
		},
		"leaves a zone beside zones for validation to refuse": {
			spec: clusterv1alpha1.ClusterSpec{Zone: "a", Zones: []string{"b"}},
			want: clusterv1alpha1.ClusterSpec{Zone: "a", Zones: []string{"b"}},
		},
		"stamps only taints that evict and have no time": {
			spec: clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{
				{Key: "a", Effect: corev1.TaintEffectNoExecute},
				{Key: "b", Effect: corev1.TaintEffectNoExecute, TimeAdded: &earlier},
				{Key: "c", Effect: corev1.TaintEffectNoSchedule},
			}},
			want: clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{
				{Key: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &stamped},
				{Key: "b", Effect: corev1.TaintEffectNoExecute, TimeAdded: &earlier},
				{Key: "c", Effect: corev1.TaintEffectNoSchedule},
			}},
		},
		"sorts models by grade and opens both ends": {
			spec: clusterv1alpha1.ClusterSpec{ResourceModels: []clusterv1alpha1.ResourceModel{model(2, "cpu 2 4"), model(1, "cpu 1 2")}},
			want: clusterv1alpha1.ClusterSpec{ResourceModels: []clusterv1alpha1.ResourceModel{model(1, "cpu 0 2"), model(2, "cpu 2 9223372036854775807")}},
		},
		"gives a new cluster the default models": {
			creating: true,
			want:     clusterv1alpha1.ClusterSpec{ResourceModels: defaultModels()},
		},
		"gives a known cluster none": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{Spec: tc.spec}
			prepare(cluster, tc.creating, now)
			if diff := cmp.Diff(tc.want, cluster.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			again := cluster.DeepCopy()
			prepare(again, tc.creating, now.Add(time.Hour))
			if diff := cmp.Diff(cluster, again); diff != "" {
				t.Errorf("twice is not once (-once +twice):\n%s", diff)
			}
		})
	}
}

func TestDefaultModels(t *testing.T) {
	const most = "9223372036854775807"
	want := []clusterv1alpha1.ResourceModel{
		model(0, "cpu 0 1", "memory 0 4Gi"), model(1, "cpu 1 2", "memory 4Gi 16Gi"), model(2, "cpu 2 4", "memory 16Gi 32Gi"),
		model(3, "cpu 4 8", "memory 32Gi 64Gi"), model(4, "cpu 8 16", "memory 64Gi 128Gi"), model(5, "cpu 16 32", "memory 128Gi 256Gi"),
		model(6, "cpu 32 64", "memory 256Gi 512Gi"), model(7, "cpu 64 128", "memory 512Gi 1Ti"), model(8, "cpu 128 "+most, "memory 1Ti "+most),
	}
	if diff := cmp.Diff(want, defaultModels()); diff != "" {
		t.Errorf("default models (-want +got):\n%s", diff)
	}
	if errs := validate(clusterWith(func(s *clusterv1alpha1.ClusterSpec) { s.ResourceModels = defaultModels() })); len(errs) > 0 {
		t.Errorf("default models are not valid: %v", errs)
	}
	if got := defaultModels()[8].Ranges[1].Max.Value(); got != math.MaxInt64 {
		t.Errorf("last grade ends at %d", got)
	}
}

func TestValidate(t *testing.T) {
	type spec = clusterv1alpha1.ClusterSpec
	cases := map[string]struct {
		change func(*spec)
		name   string
		want   []string
	}{
		"a cluster with all fields": {change: func(s *spec) {
			*s = spec{
				ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://[::1]:6443/base", ProxyURL: "socks5://u:p@proxy:1080",
				SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "a", Name: "b"}, Provider: "p", Region: "eu-west", Zones: []string{"a", "b"},
				Taints:         []corev1.Taint{{Key: "example.org/a", Value: "v", Effect: corev1.TaintEffectNoExecute}, {Key: "example.org/a", Effect: corev1.TaintEffectNoSchedule}},
				ResourceModels: []clusterv1alpha1.ResourceModel{model(0, "cpu 0 1"), model(5, "cpu 1 9223372036854775807")},
			}
		}},
		"a cluster without an endpoint":  {change: func(s *spec) { s.APIEndpoint = "" }},
		"a name of 48 characters":        {name: strings.Repeat("a", 48)},
		"a name that is too long":        {name: strings.Repeat("a", 49), want: []string{"metadata.name"}},
		"a name with a dot":              {name: "a.b", want: []string{"metadata.name"}},
		"a name in capitals":             {name: "EU", want: []string{"metadata.name"}},
		"an id that is too long":         {change: func(s *spec) { s.ID = strings.Repeat("x", 128_001) }, want: []string{"spec.id"}},
		"no mode":                        {change: func(s *spec) { s.SyncMode = "" }, want: []string{"spec.syncMode"}},
		"an unknown mode":                {change: func(s *spec) { s.SyncMode = "push" }, want: []string{"spec.syncMode"}},
		"an endpoint without host":       {change: func(s *spec) { s.APIEndpoint = "https:///x" }, want: []string{"spec.apiEndpoint"}},
		"an endpoint that is no URL":     {change: func(s *spec) { s.APIEndpoint = "https://a b" }, want: []string{"spec.apiEndpoint"}},
		"an endpoint with a user":        {change: func(s *spec) { s.APIEndpoint = "https://u:p@host" }, want: []string{"spec.apiEndpoint"}},
		"an endpoint with a query":       {change: func(s *spec) { s.APIEndpoint = "https://host?a=b" }, want: []string{"spec.apiEndpoint"}},
		"an endpoint with a fragment":    {change: func(s *spec) { s.APIEndpoint = "https://host#a" }, want: []string{"spec.apiEndpoint"}},
		"a proxy of an unknown scheme":   {change: func(s *spec) { s.ProxyURL = "ftp://host" }, want: []string{"spec.proxyURL"}},
		"a proxy that is no URL":         {change: func(s *spec) { s.ProxyURL = "http://u:p@a b" }, want: []string{"spec.proxyURL"}},
		"a secret without its name":      {change: func(s *spec) { s.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "a"} }, want: []string{"spec.secretRef.name"}},
		"an impersonator without place":  {change: func(s *spec) { s.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Name: "a"} }, want: []string{"spec.impersonatorSecretRef.namespace"}},
		"places that are no label value": {change: func(s *spec) { s.Provider, s.Region, s.Zones = "a b", "-", []string{"a", "b/"} }, want: []string{"spec.provider", "spec.region", "spec.zones[1]"}},
		"a zone beside zones":            {change: func(s *spec) { s.Zone, s.Zones = "a", []string{"b"} }, want: []string{"spec.zone"}},
		"a taint that only prefers":      {change: func(s *spec) { s.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectPreferNoSchedule}} }, want: []string{"spec.taints[0].effect"}},
		"a taint without key":            {change: func(s *spec) { s.Taints = []corev1.Taint{{Effect: corev1.TaintEffectNoSchedule}} }, want: []string{"spec.taints[0].key", "spec.taints[0].key"}},
		"a taint with a bad value": {change: func(s *spec) {
			s.Taints = []corev1.Taint{{Key: "a", Value: "b c", Effect: corev1.TaintEffectNoSchedule}}
		}, want: []string{"spec.taints[0].value"}},
		"a taint twice": {change: func(s *spec) {
			s.Taints = []corev1.Taint{{Key: "a", Value: "1", Effect: corev1.TaintEffectNoSchedule}, {Key: "a", Value: "2", Effect: corev1.TaintEffectNoSchedule}}
		}, want: []string{"spec.taints[1]"}},
		"a model without ranges":            {change: models(model(0)), want: []string{"spec.resourceModels[0].ranges"}},
		"models that do not begin at 0":     {change: models(model(0, "cpu 1 9223372036854775807")), want: []string{"spec.resourceModels[0].ranges[0].min"}},
		"models that end":                   {change: models(model(0, "cpu 0 1")), want: []string{"spec.resourceModels[0].ranges[0].max"}},
		"a range that ends before it began": {change: models(model(0, "cpu 0 0"), model(1, "cpu 0 9223372036854775807")), want: []string{"spec.resourceModels[0].ranges[0].max"}},
		"a gap between grades":              {change: models(model(0, "cpu 0 1"), model(1, "cpu 2 9223372036854775807")), want: []string{"spec.resourceModels[1].ranges[0].min"}},
		"a grade twice":                     {change: models(model(0, "cpu 0 1"), model(0, "cpu 1 9223372036854775807")), want: []string{"spec.resourceModels[1].grade"}},
		"resources in another order": {change: models(model(0, "cpu 0 1", "memory 0 1"), model(1, "memory 1 9223372036854775807", "cpu 1 9223372036854775807")),
			want: []string{"spec.resourceModels[1].ranges[0].name", "spec.resourceModels[1].ranges[1].name"}},
		"a resource too many": {change: models(model(0, "cpu 0 1"), model(1, "cpu 1 9223372036854775807", "memory 0 9223372036854775807")),
			want: []string{"spec.resourceModels[1].ranges"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change = func(*spec) {}
			}
			cluster := clusterWith(tc.change)
			if tc.name != "" {
				cluster.Name = tc.name
			}
			var got []string
			for _, err := range validate(cluster) {
				got = append(got, err.Field)
				if strings.Contains(err.Error(), "u:p") {
					t.Errorf("error gives a password away: %v", err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields with errors (-want +got):\n%s", diff)
			}
		})
	}
}

func models(models ...clusterv1alpha1.ResourceModel) func(*clusterv1alpha1.ClusterSpec) {
	return func(s *clusterv1alpha1.ClusterSpec) { s.ResourceModels = models }
}
