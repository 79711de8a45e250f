package karmada

import (
	"cmp"
	"slices"
)

// Groups of components that share flags.
var (
	everyone = []Component{manager, scheduler, descheduler, estimator, apiserver, webhook, search, adapter, agent}
	electing = []Component{manager, scheduler, descheduler, agent}
	deciding = []Component{scheduler, descheduler}
	servers  = []Component{apiserver, search, adapter}
)

// all returns the flags, sorted by name.
func all() []Flag {
	out := slices.Concat(loops(), placing(), electionAndWorkers(), connections(), agents(), missing(), logging(), serving(), auditing())
	slices.SortFunc(out, func(a, b Flag) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// does returns flags that the program has.
func does(of []Component, here string, names ...string) []Flag {
	return flags(Flag{Of: of, effect: works, Here: here}, names)
}

// ignores returns flags that change nothing, with the reason.
func ignores(of []Component, kind kind, why string, names ...string) []Flag {
	return flags(Flag{Of: of, effect: idle, Here: why, kind: kind}, names)
}

// refuses returns flags that are refused, with what to use instead.
func refuses(of []Component, kind kind, instead string, names ...string) []Flag {
	return flags(Flag{Of: of, effect: refused, Here: instead, kind: kind}, names)
}

// flags returns copies of f with the given names.
func flags(f Flag, names []string) []Flag {
	out := make([]Flag, 0, len(names))
	for _, name := range names {
		f.Name = name
		out = append(out, f)
	}
	return out
}

func loops() []Flag {
	of := []Component{manager}
	return slices.Concat(
		does(of, "loops to run, by their names here or Karmada's", "controllers"),
		does(of, "kinds that stay on the control plane", "skipped-propagating-apis"),
		does(of, "namespaces that stay on the control plane", "skipped-propagating-namespaces"),
		does(of, "how long an agent may be silent", "cluster-monitor-grace-period"),
		does(of, "how long an agent may be silent that never reported", "cluster-startup-grace-period"),
		does([]Component{manager, agent}, "how often a cluster's health is asked for", "cluster-status-update-frequency"),
		does([]Component{manager, agent}, "how long a cluster must fail before it is not ready", "cluster-failure-threshold"),
		does([]Component{manager, agent}, "how long a cluster must be well before it is ready again", "cluster-success-threshold"),
		does([]Component{manager, agent}, "false counts no nodes by the clusters' resource models", "enable-cluster-resource-modeling"),
		does(everyone, "what to switch on and off, see below", "feature-gates"),
		does(everyone, "where the loops serve /metrics", "metrics-bind-address"),
		does(everyone, "where the loops serve /healthz and /readyz", "health-probe-bind-address"),
		does(everyone, "true serves profiles at --profiling-bind-address", "enable-pprof"),
		does(everyone, "where profiles are served; on loopback alone without the flag", "profiling-bind-address"),
		does(of, "heeds taints of the effect NoExecute, with the gate Failover", "enable-taint-manager"),
		does(of, "moves what runs in clusters with such taints, with the gate Failover", "enable-no-execute-taint-eviction"),
		does(of, "how a cluster is left where the policy does not say", "no-execute-taint-eviction-purge-mode"),
		does(of, "how many templates are moved in a second", "resource-eviction-rate"),
		does(of, "how long an old copy is kept at most", "graceful-eviction-timeout"),
		does([]Component{webhook}, "ClusterTaintPolicies may evict", "allow-no-execute-taint-policy"),
		ignores(of, duration, "a silence is noticed when it is long enough, without a period", "cluster-monitor-period"),
		ignores(of, duration, "kinds of a cluster are watched one by one, and retried", "cluster-cache-sync-timeout"),
		ignores(of, duration, "usage is counted from bindings at each write", "federated-resource-quota-sync-period"),
		ignores(of, duration, "what is watched is not read again", "resync-period"),
	)
}

func placing() []Flag {
	of := []Component{scheduler}
	return slices.Concat(
		does(of, "the scheduler that the loops are", "scheduler-name"),
		does(of, "plugins that choose clusters", "plugins"),
		does(of, "carries a workload to chosen clusters that get no replicas", "enable-empty-workload-propagation"),
		does(deciding, "asks accurate estimators of clusters, ours or Karmada's", "enable-scheduler-estimator"),
		does(deciding, "leaves out those of clusters in pull mode", "disable-scheduler-estimator-in-pull-mode"),
		does(deciding, "how long an answer is waited for at most; a decision waits for less", "scheduler-estimator-timeout"),
		does(deciding, "where the Services are that lead to estimators", "scheduler-estimator-service-namespace"),
		does(deciding, "what their names begin with", "scheduler-estimator-service-prefix"),
		does(deciding, "the port of these Services", "scheduler-estimator-port"),
		does(deciding, "what connections to estimators are secured with", "scheduler-estimator-ca-file", "scheduler-estimator-cert-file", "scheduler-estimator-key-file"),
		does(deciding, "believes every estimator that it is one", "insecure-skip-estimator-verify"),
		does([]Component{descheduler}, "how often replicas are looked for that find no node", "descheduling-interval"),
		does([]Component{descheduler}, "how long such a replica must have waited", "unschedulable-threshold"),
	)
}

func electionAndWorkers() []Flag {
	of, retrying := []Component{manager}, []Component{manager, scheduler, descheduler, agent}
	return slices.Concat(
		does(of, "clusters that are looked at side by side", "concurrent-cluster-syncs"),
		does(of, "Works of one cluster that are written side by side", "concurrent-work-syncs"),
		does(of, "bindings whose Works are written side by side, of both scopes together: the larger of the two flags", "concurrent-resourcebinding-syncs", "concurrent-clusterresourcebinding-syncs"),
		does(of, "namespaces that are looked at side by side", "concurrent-namespace-syncs"),
		does(of, "templates that are looked at side by side", "concurrent-resource-template-syncs"),
		does(of, "bindings whose dependencies are looked at side by side", "concurrent-dependent-resource-syncs"),
		ignores(of, integer, "three policies are looked at side by side", "concurrent-propagation-policy-syncs", "concurrent-cluster-propagation-policy-syncs"),
		ignores(electing, boolean, "replicas on one store always elect one whose loops run; flotillad controllers has the flag", "leader-elect"),
		ignores(electing, duration, "the lease's times are fixed: 15 s, renewed within 10 s, tried each 2 s", "leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period"),
		ignores(electing, text, "the lease has a fixed name", "leader-elect-resource-name", "leader-elect-resource-lock", "leader-elect-resource-namespace"),
		ignores(retrying, duration, "what fails is tried again after times that follow from the fault", "rate-limiter-base-delay", "rate-limiter-max-delay"),
		ignores(retrying, integer, "queues are fair by namespace instead of slow", "rate-limiter-qps", "rate-limiter-bucket-size"),
	)
}

func connections() []Flag {
	of := []Component{manager, search, agent}
	return slices.Concat(
		ignores(everyone, number, "requests of the loops are not throttled by themselves", "kube-api-qps"),
		ignores(everyone, integer, "requests of the loops are not throttled by themselves", "kube-api-burst"),
		ignores(of, number, "requests to a member are bounded by how fast it answers", "cluster-api-qps"),
		ignores(of, integer, "requests to a member are bounded by how fast it answers", "cluster-api-burst"),
		refuses(everyone, text, "serve is the control plane itself: flotillad controllers --kubeconfig runs the loops against another one", "kubeconfig", "master"),
		refuses([]Component{manager}, text, "clusters of the Cluster API are not joined by themselves: use flotilla join", "cluster-api-kubeconfig", "cluster-api-context"),
	)
}

func agents() []Flag {
	const instead = "it is a flag of the agent: use flotilla-agent"
	of := []Component{agent}
	return slices.Concat(
		refuses(of, text, instead, "karmada-kubeconfig", "karmada-context", "karmada-kubeconfig-namespace", "cluster-namespace", "report-secrets",
			"cluster-api-endpoint", "proxy-server-address", "cluster-provider", "cluster-region", "cluster-zones", "cluster-lease-duration",
			"cluster-lease-renew-interval-fraction", "cert-rotation-checking-interval", "cert-rotation-remaining-time-threshold"),
		refuses([]Component{agent, estimator}, text, instead+", or flotillad estimator", "cluster-name"),
	)
}

// missing returns the flags of areas that do not exist here yet, and those of the estimator,
// which is a command of its own.
func missing() []Flag {
	of := []Component{manager}
	return slices.Concat(
		ignores(of, duration, "until autoscaling is built", "horizontal-pod-autoscaler-sync-period", "horizontal-pod-autoscaler-upscale-delay",
			"horizontal-pod-autoscaler-downscale-delay", "horizontal-pod-autoscaler-downscale-stabilization",
			"horizontal-pod-autoscaler-cpu-initialization-period", "horizontal-pod-autoscaler-initial-readiness-delay"),
		ignores(of, number, "until autoscaling is built", "horizontal-pod-autoscaler-tolerance"),
		ignores([]Component{search}, boolean, "until search is built", "disable-search", "disable-proxy"),
		refuses([]Component{estimator}, text, "it is a flag of flotillad estimator", "server-port", "parallelism", "grpc-auth-cert-file", "grpc-auth-key-file", "grpc-client-ca-file"),
		refuses([]Component{estimator}, boolean, "it is a flag of flotillad estimator", "insecure-skip-grpc-client-verify"),
	)
}

func logging() []Flag {
	const why = "the log goes to standard error, as --v and --logging-format say"
	return slices.Concat(
		does(everyone, "how much is logged", "v"),
		does(everyone, "text or json", "logging-format"),
		ignores(everyone, boolean, why, "add-dir-header", "alsologtostderr", "log-json-split-stream", "log-text-split-stream", "logtostderr", "one-output", "skip-headers", "skip-log-headers"),
		ignores(everyone, text, why, "log-backtrace-at", "log-dir", "log-file", "log-json-info-buffer-size", "log-text-info-buffer-size", "stderrthreshold", "vmodule"),
		ignores(everyone, integer, why, "log-file-max-size"),
		ignores(everyone, duration, why, "log-flush-frequency"),
	)
}
