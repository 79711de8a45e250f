package native_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkStatus compares the status that a template gets with the wanted one, and
// checks that aggregating it again changes nothing.
func checkStatus(t *testing.T, template string, copies []string, want string) {
	t.Helper()
	out := rolled(t, template, copies)
	got, _ := out.Object["status"].(map[string]any)
	if diff := cmp.Diff(object(t, want).Object, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	text, err := out.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out.Object, rolled(t, string(text), copies).Object); diff != "" {
		t.Errorf("without news, something is written (-once +twice):\n%s", diff)
	}
}

// TestAggregateAddresses checks that a template has the addresses of all clusters,
// sorted, each once, as far as the API server accepts them.
func TestAggregateAddresses(t *testing.T) {
	const (
		balancer = `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {conditions: [kept]}}`
		ingress  = `{apiVersion: networking.k8s.io/v1, kind: Ingress}`
	)
	balances := func(addresses string) string {
		return `{spec: {type: LoadBalancer}, status: {conditions: [left], loadBalancer: {ingress: [` + addresses + `]}}}`
	}
	reports := func(addresses string) string { return `{status: {loadBalancer: {ingress: [` + addresses + `]}}}` }
	cases := map[string]struct {
		template string
		copies   []string
		want     string
	}{
		"addresses of a service say how they are reached": {
			balancer, []string{balances(`{ip: 10.0.0.2}, {ip: 10.0.0.1, ipMode: Proxy}`), balances(`{hostname: b.example}, {ip: 10.0.0.2, ipMode: odd}`), "-"},
			`{conditions: [kept], loadBalancer: {ingress: [{hostname: b.example}, {ip: 10.0.0.1, ipMode: Proxy}, {ip: 10.0.0.2, ipMode: VIP}]}}`,
		},
		"no cluster has one": {balancer, []string{balances(``), "-"}, `{conditions: [kept]}`},
		"no cluster has one any more": {
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}}`,
			[]string{balances(``)}, `{loadBalancer: {ingress: []}}`,
		},
		"a service that balances nothing has none": {
			`{apiVersion: v1, kind: Service, spec: {type: NodePort}}`, []string{balances(`{ip: 10.0.0.1}`)}, `{}`,
		},
		"a service that balances nothing reports none": {
			balancer, []string{`{spec: {type: NodePort}, status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}}`}, `{conditions: [kept]}`,
		},
		"addresses of an ingress": {
			ingress, []string{reports(`{ip: "2001:DB8::1"}, {ip: 10.0.0.1, hostname: a.example}`), reports(`{ip: 10.0.0.1, hostname: a.example}`)},
			`{loadBalancer: {ingress: [{hostname: a.example, ip: 10.0.0.1}, {ip: "2001:db8::1"}]}}`,
		},
		"what servers would refuse is left out": {
			ingress, []string{reports(`{ip: 10.0.0, hostname: a_b}, {ip: "fe80::1%eth0"}, {ip: "::ffff:10.0.0.1"}, {hostname: 10.0.0.9}, 7, {ip: "", hostname: x.example}`)},
			`{loadBalancer: {ingress: [{hostname: x.example}]}}`,
		},
		"ports, with what is wrong with them": {
			ingress, []string{reports(`{ip: 10.0.0.1, ports: [{port: 80, protocol: TCP, more: x}, {port: 443, protocol: TCP, error: NoCert}, {port: 0, protocol: TCP}, {port: 65536, protocol: TCP}, {port: 81}]}`)},
			`{loadBalancer: {ingress: [{ip: 10.0.0.1, ports: [{port: 80, protocol: TCP}, {port: 443, protocol: TCP, error: NoCert}]}]}}`,
		},
		"no port that can be": {
			ingress, []string{reports(`{ip: 10.0.0.1, ports: [{port: 0, protocol: TCP}]}`)}, `{loadBalancer: {ingress: [{ip: 10.0.0.1}]}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkStatus(t, tc.template, tc.copies, tc.want) })
	}
}

// TestAggregateJobs checks that the status of a job only makes changes that the
// API server accepts.
func TestAggregateJobs(t *testing.T) {
	const (
		early, late = `"2026-01-01T00:00:00Z"`, `"2026-01-01T01:00:00Z"`
		job         = `{apiVersion: batch/v1, kind: Job}`
		held        = `{status: {conditions: [{type: Suspended, status: "True", lastTransitionTime: ` + early + `}]}}`
		runs        = `{status: {active: 1, startTime: ` + late + `, conditions: [{type: Suspended, status: "False", lastTransitionTime: ` + late + `}]}}`
		isHeld      = `{type: Suspended, status: "True", reason: JobSuspended, message: Job suspended, lastTransitionTime: ` + early + `, lastProbeTime: ` + early + `}`
		failed      = `{status: {failed: 1, startTime: ` + early + `, conditions: [{type: Failed, status: "True", lastTransitionTime: ` + late + `}]}}`
		failing     = `status: "True", reason: JobFailed, message: Job executed failed in member clusters m1, lastTransitionTime: ` + late + `, lastProbeTime: ` + late
		completed   = `status: "True", reason: Completed, message: Job completed, lastTransitionTime: ` + late + `, lastProbeTime: ` + late
	)
	cases := map[string]struct {
		template string
		copies   []string
		want     string
	}{
		"held once it is held wherever it has not ended": {
			job, []string{held, jobDone}, `{active: 0, succeeded: 1, failed: 0, conditions: [` + isHeld + `]}`,
		},
		"not while it runs anywhere": {job, []string{held, runs}, `{active: 1, succeeded: 0, failed: 0}`},
		"resumed where it was held": {
			`{apiVersion: batch/v1, kind: Job, status: {conditions: [` + isHeld + `]}}`, []string{runs, runs},
			`{active: 2, succeeded: 0, failed: 0, startTime: ` + late + `, conditions: [
  {type: Suspended, status: "False", reason: JobResumed, message: Job resumed, lastTransitionTime: ` + late + `, lastProbeTime: ` + late + `}]}`,
		},
		"counts of what has ended never fall, nor does the start": {
			`{apiVersion: batch/v1, kind: Job, status: {active: 9, succeeded: 5, failed: 4, startTime: ` + early + `}}`,
			[]string{`{status: {active: 1, succeeded: 1, failed: 2, startTime: ` + late + `}}`, "-"},
			`{active: 1, succeeded: 5, failed: 4, startTime: ` + early + `}`,
		},
		"failed at once, and for good only when nothing runs": {
			job, []string{failed, runs},
			`{active: 1, succeeded: 0, failed: 1, startTime: ` + early + `, conditions: [{type: FailureTarget, ` + failing + `}]}`,
		},
		"failed once nothing runs": {
			job, []string{failed, "-"},
			`{active: 0, succeeded: 0, failed: 1, startTime: ` + early + `, conditions: [{type: FailureTarget, ` + failing + `}, {type: Failed, ` + failing + `}]}`,
		},
		"completed once it is everywhere, when the last was": {
			job, []string{jobDone, jobDone},
			`{active: 0, succeeded: 2, failed: 0, startTime: ` + early + `, completionTime: ` + late + `, conditions: [{type: SuccessCriteriaMet, ` + completed + `}, {type: Complete, ` + completed + `}]}`,
		},
		"completed everywhere while something still runs": {
			job, []string{`{status: {active: 1, startTime: ` + early + `, conditions: [{type: Complete, status: "True"}]}}`},
			`{active: 1, succeeded: 0, failed: 0, startTime: ` + early + `}`,
		},
		"what will complete does not fail": {
			`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: SuccessCriteriaMet, status: "True"}]}}`, []string{failed},
			`{active: 0, succeeded: 0, failed: 1, startTime: ` + early + `, conditions: [{type: SuccessCriteriaMet, status: "True"}]}`,
		},
		"what has ended stays as it is": {
			`{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`, []string{failed},
			`{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkStatus(t, tc.template, tc.copies, tc.want) })
	}
}

// TestAggregateCronJobs checks that a cron job lists the active jobs of all
// clusters, and the latest times.
func TestAggregateCronJobs(t *testing.T) {
	const (
		early, late = `"2026-01-01T00:00:00Z"`, `"2026-01-01T01:00:00Z"`
		cron        = `{apiVersion: batch/v1, kind: CronJob}`
	)
	cases := map[string]struct {
		template string
		copies   []string
		want     string
	}{
		"what a cron job runs, and the last times": {
			cron, []string{
				`{status: {active: [{name: a, namespace: ns, more: x}], lastScheduleTime: ` + late + `, lastSuccessfulTime: ` + early + `}}`,
				`{status: {active: [{name: b}, {name: 7}, c], lastScheduleTime: ` + early + `}}`, "-",
			},
			`{active: [{name: a, namespace: ns}, {name: b}], lastScheduleTime: ` + late + `, lastSuccessfulTime: ` + early + `}`,
		},
		"a cron job that runs nothing any more, whose times do not go back": {
			`{apiVersion: batch/v1, kind: CronJob, status: {active: [{name: a}], lastScheduleTime: ` + late + `}}`,
			[]string{`{status: {lastScheduleTime: ` + early + `}}`}, `{active: [], lastScheduleTime: ` + late + `}`,
		},
		"a cron job that never ran": {cron, []string{`{status: {}}`}, `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkStatus(t, tc.template, tc.copies, tc.want) })
	}
}

// TestAggregatePods checks that a pod lists its containers by cluster, and shows
// one as terminated only where it is not restarted.
func TestAggregatePods(t *testing.T) {
	template := func(spec, status string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {generation: 1}, spec: {` + spec + `}, status: {` + status + `}}`
	}
	ended := func(code string) string {
		return `{status: {phase: Running, containerStatuses: [{name: a, image: x, restartCount: 3, state: {terminated: {exitCode: ` + code + `}}}]}}`
	}
	const (
		plain    = `name: a, image: "", imageID: "", restartCount: 0`
		stopped  = `state: {terminated: {exitCode: 0}}`
		runs     = `{status: {phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}]}}`
		oneEnded = `{phase: Running, containerStatuses: [{` + plain + `, ready: false, ` + stopped + `}]}`
		oneNot   = `{phase: Running, containerStatuses: [{` + plain + `, ready: false}]}`
	)
	cases := map[string]struct {
		template string
		copies   []string
		want     string
	}{
		"the worst phase, and containers by cluster": {
			template(``, ``), []string{runs, `{status: {phase: Failed, containerStatuses: [{name: a}]}}`},
			`{phase: Failed, containerStatuses: [
  {name: m1/a, image: "", imageID: "", restartCount: 0, ready: true, state: {running: {}}}, {name: m2/a, image: "", imageID: "", restartCount: 0, ready: false}]}`,
		},
		"a cluster that says nothing is pending": {
			template(``, ``), []string{runs, "-"}, `{phase: Pending, containerStatuses: [{name: m1/a, image: "", imageID: "", restartCount: 0, ready: true, state: {running: {}}}]}`,
		},
		"ended, and never started again":              {template(`restartPolicy: Never`, ``), []string{ended("0")}, oneEnded},
		"ended well, and started again on failure":    {template(`restartPolicy: OnFailure`, ``), []string{ended("0")}, oneEnded},
		"ended badly, and started again on failure":   {template(`restartPolicy: OnFailure`, ``), []string{ended("1")}, oneNot},
		"ended, and always started again":             {template(`restartPolicy: Always`, ``), []string{ended("0")}, oneNot},
		"ended, with a rule of its own":               {template(`restartPolicy: Never, containers: [{name: a, restartPolicy: Always}]`, ``), []string{ended("0")}, oneNot},
		"ended, with rules of its own for exit codes": {template(`restartPolicy: Never, containers: [{name: a, restartPolicyRules: []}]`, ``), []string{ended("0")}, oneNot},
		"ended, beside one with a rule of its own":    {template(`restartPolicy: Never, containers: [{name: b, restartPolicy: Always}]`, ``), []string{ended("0")}, oneEnded},
		"what has ended does not come back": {
			template(`restartPolicy: Never`, `containerStatuses: [{name: a, `+stopped+`}]`), []string{runs},
			`{phase: Running, containerStatuses: [{` + plain + `, ready: true, ` + stopped + `}]}`,
		},
		"a state that is none":     {template(``, ``), []string{`{status: {phase: Running, containerStatuses: [{name: a, state: {running: yes}}, 7]}}`}, oneNot},
		"containers that are gone": {template(``, `containerStatuses: [{name: a}]`), []string{`{status: {phase: Pending}}`}, `{phase: Pending, containerStatuses: []}`},
		"a kubelet that is too old to say what it has seen": {
			template(``, ``), []string{`{metadata: {generation: 4, ` + templateGeneration + `}, status: {phase: Running}}`}, `{phase: Running, observedGeneration: 1}`,
		},
		"a kubelet that has not seen the latest": {
			template(``, ``), []string{`{metadata: {generation: 4, ` + templateGeneration + `}, status: {phase: Running, observedGeneration: 3}}`}, `{phase: Running}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkStatus(t, tc.template, tc.copies, tc.want) })
	}
}

// TestAggregateScaling checks that the counts of budgets and autoscalers are
// summed, and disrupted pods are listed by cluster.
func TestAggregateScaling(t *testing.T) {
	const budget = `apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 2}`
	cases := map[string]struct {
		template string
		copies   []string
		want     string
	}{
		"a budget": {
			`{` + budget + `}`, []string{
				`{status: {expectedPods: 2, currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, disruptedPods: {p: "2026-01-01T00:00:00Z", q: never}}}`,
				`{status: {expectedPods: 1, disruptedPods: {p: "2026-01-01T01:00:00+01:00"}}}`,
			},
			`{expectedPods: 3, currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, disruptedPods: {m1/p: "2026-01-01T00:00:00Z", m2/p: "2026-01-01T00:00:00Z"}}`,
		},
		"a budget of which no pod is disrupted any more": {
			`{` + budget + `, status: {disruptedPods: {m1/p: "2026-01-01T00:00:00Z"}}}`, []string{`{status: {expectedPods: 2}}`},
			`{expectedPods: 2, currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0}`,
		},
		"an autoscaler, whose reasons change all the time": {
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}`, []string{
				`{status: {currentReplicas: 1, desiredReplicas: 2, conditions: [{type: ScalingActive, status: "True", reason: Busy, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
				`{status: {currentReplicas: 3, desiredReplicas: 3, conditions: [{type: ScalingActive, status: "True", reason: Idle, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`,
			},
			`{currentReplicas: 4, desiredReplicas: 5, conditions: [{type: ScalingActive, status: "True", reason: Reported, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
		},
		"a volume that has failed anywhere": {
			`{apiVersion: v1, kind: PersistentVolume}`, []string{`{status: {phase: Bound}}`, `{status: {phase: Failed}}`}, `{phase: Failed}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkStatus(t, tc.template, tc.copies, tc.want) })
	}
}
