package rules_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// named returns a dependency of the core group in the namespace ns.
func named(kind, name string) kinds.Dependency {
	return kinds.Dependency{APIVersion: "v1", Kind: kind, Namespace: "ns", Name: name}
}

// TestPodDependencies checks that what a pod spec names is found wherever it may
// be, sorted, each once.
func TestPodDependencies(t *testing.T) {
	// driver returns a pod spec with a volume whose driver logs in with a secret.
	driver := func(volume string) string { return `{volumes: [{name: v, ` + volume + `}]}` }
	login := []kinds.Dependency{named("Secret", "login")}
	cases := map[string]struct {
		spec string
		want []kinds.Dependency
	}{
		"nothing":                       {`{containers: [{name: a, env: [{name: X, value: x}]}]}`, nil},
		"an account":                    {`{serviceAccountName: me, serviceAccount: other}`, []kinds.Dependency{named("ServiceAccount", "me")}},
		"an account by its old name":    {`{serviceAccount: me}`, []kinds.Dependency{named("ServiceAccount", "me")}},
		"the account that there is":     {`{serviceAccountName: default}`, nil},
		"secrets to pull images with":   {`{imagePullSecrets: [{name: b}, {name: a}, {name: b}, {}]}`, []kinds.Dependency{named("Secret", "a"), named("Secret", "b")}},
		"what variables are made of":    {`{containers: [{name: a, envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}}]}]}`, []kinds.Dependency{named("ConfigMap", "c"), named("Secret", "s")}},
		"what a variable is made of":    {`{initContainers: [{name: a, env: [{name: X, valueFrom: {configMapKeyRef: {name: c, key: k}}}, {name: W, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}`, []kinds.Dependency{named("ConfigMap", "c"), named("Secret", "s")}},
		"what a variable of itself is":  {`{containers: [{name: a, env: [{name: X, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}`, nil},
		"of a container for looking in": {`{ephemeralContainers: [{name: a, envFrom: [{secretRef: {name: s}}]}]}`, []kinds.Dependency{named("Secret", "s")}},
		"volumes": {
			`{volumes: [{name: a, configMap: {name: c}}, {name: b, secret: {secretName: s}}, {name: d, persistentVolumeClaim: {claimName: p}}, {name: e, emptyDir: {}}]}`,
			[]kinds.Dependency{named("ConfigMap", "c"), named("PersistentVolumeClaim", "p"), named("Secret", "s")},
		},
		"a volume of several sources": {
			driver(`projected: {sources: [{configMap: {name: c}}, {secret: {name: s}}, {serviceAccountToken: {path: t}}]}`),
			[]kinds.Dependency{named("ConfigMap", "c"), named("Secret", "s")},
		},
		"a driver's login: CSI":        {driver(`csi: {driver: d, nodePublishSecretRef: {name: login}}`), login},
		"a driver's login: CephFS":     {driver(`cephfs: {secretRef: {name: login}}`), login},
		"a driver's login: RBD":        {driver(`rbd: {secretRef: {name: login}}`), login},
		"a driver's login: iSCSI":      {driver(`iscsi: {secretRef: {name: login}}`), login},
		"a driver's login: FlexVolume": {driver(`flexVolume: {driver: d, secretRef: {name: login}}`), login},
		"a driver's login: ScaleIO":    {driver(`scaleIO: {secretRef: {name: login}}`), login},
		"a driver's login: StorageOS":  {driver(`storageos: {secretRef: {name: login}}`), login},
		"a driver's login: Cinder":     {driver(`cinder: {volumeID: i, secretRef: {name: login}}`), login},
		"a driver's login: Azure":      {driver(`azureFile: {secretName: login, shareName: s}`), login},
		"a driver without a login":     {driver(`csi: {driver: d}`), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := object(t, `{metadata: {namespace: ns}, template: {spec: `+tc.spec+`}}`)
			got, err := rules.PodTemplateDependencies("template")(pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("dependencies (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNeeds checks that dependencies of any group are sorted, each once, and that
// two that differ in their labels only are two.
func TestNeeds(t *testing.T) {
	needs := rules.Needs{Namespace: "ns"}
	needs.AddOf("z.example/v1", "Zed", "a")
	needs.Add("Secret", "s")
	needs.Add("Secret", "")
	needs.Add("ConfigMap", "s")
	needs.Add("Secret", "s")
	labelled := func(value string) kinds.Dependency {
		return kinds.Dependency{APIVersion: "v1", Kind: "Secret", Namespace: "ns", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": value}}}
	}
	zed := kinds.Dependency{APIVersion: "z.example/v1", Kind: "Zed", Namespace: "ns", Name: "a"}
	if diff := cmp.Diff([]kinds.Dependency{named("ConfigMap", "s"), named("Secret", "s"), zed}, needs.Sorted()); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
	got := rules.Union([]kinds.Dependency{labelled("y"), zed}, nil, needs.Sorted(), []kinds.Dependency{labelled("x"), labelled("y")})
	want := []kinds.Dependency{named("ConfigMap", "s"), labelled("x"), labelled("y"), named("Secret", "s"), zed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("union (-want +got):\n%s", diff)
	}
	if got := rules.Union(nil, nil); got != nil {
		t.Errorf("union of nothing = %v", got)
	}
}
