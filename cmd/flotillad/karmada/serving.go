package karmada

import "slices"

// serving returns the flags of Kubernetes' API servers that Karmada's own servers have. Flags
// that promise protection which is not given here are refused; flags that only tune are
// ignored.
func serving() []Flag {
	const (
		itself = "the control plane authenticates and authorizes by itself"
		tuned  = "the API server's limits are fixed here"
		inside = "admission is inside the API server, and has its certificate"
		own    = "the control plane makes its certificates from a CA of its own, in --data-dir; --advertise-host adds names to them"
	)
	of := []Component{webhook, apiserver, search, adapter}
	return slices.Concat(
		does(of, "IP address of the one API server", "bind-address"),
		does(of, "port of the one API server, which admission is inside of", "secure-port"),
		does([]Component{apiserver, search}, "a store elsewhere instead of one in --data-dir", "etcd-servers", "etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile"),
		ignores([]Component{webhook, apiserver, search, adapter}, text, own, "cert-dir"),
		ignores([]Component{webhook}, text, inside, "tls-cert-file-name", "tls-private-key-file-name"),
		refuses(servers, text, own, "tls-cert-file", "tls-private-key-file", "tls-sni-cert-key"),
		refuses(of, text, "the lowest version is fixed: TLS 1.2", "tls-min-version"),
		refuses(servers, text, "the ciphers are Go's", "tls-cipher-suites", "tls-curve-preferences"),
		refuses(servers, text, "clients' certificates are those of the control plane's own CA: ask for one by a CertificateSigningRequest", "client-ca-file"),
		refuses(servers, text, "what is stored is not encrypted: encrypt the disk of --data-dir", "encryption-provider-config"),
		ignores(servers, boolean, "what is stored is not encrypted: encrypt the disk of --data-dir", "encryption-provider-config-automatic-reload"),
		refuses(servers, text, "use --advertise-host", "advertise-address", "external-hostname"),
		refuses(servers, text, "admission is fixed", "enable-admission-plugins", "disable-admission-plugins", "admission-control-config-file"),
		refuses(servers, text, "one store has all kinds", "etcd-servers-overrides"),
		refuses(servers, text, "no other origins are let in", "cors-allowed-origins"),
		refuses(servers, text, "the version is fixed", "emulated-version", "min-compatibility-version"),
		refuses(servers, text, "members are reached directly, or by the proxyURL of their Clusters", "egress-selector-config-file"),
		refuses(servers, text, "nothing is traced", "tracing-config-file"),
		refuses(servers, text, "answers carry no such header", "strict-transport-security-directives"),
		ignores(servers, boolean, "profiles are served to administrators of the control plane alone", "profiling", "contention-profiling"),
		ignores(servers, text, itself, "authentication-kubeconfig", "authorization-kubeconfig", "requestheader-client-ca-file"),
		ignores(servers, list, itself, "requestheader-allowed-names", "requestheader-extra-headers-prefix", "requestheader-group-headers", "requestheader-uid-headers",
			"requestheader-username-headers", "authorization-always-allow-paths"),
		ignores(servers, boolean, itself, "authentication-skip-lookup", "authentication-tolerate-lookup-failure"),
		ignores(servers, duration, itself, "authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl"),
		ignores(servers, boolean, tuned, "disable-http2-serving", "emulation-forward-compatible", "enable-garbage-collector", "enable-priority-and-fairness",
			"permit-address-sharing", "permit-port-sharing", "runtime-config-emulation-forward-compatible", "shutdown-send-retry-after", "watch-cache"),
		ignores(servers, integer, tuned, "default-watch-cache-size", "delete-collection-workers", "http2-max-streams-per-connection", "lease-reuse-duration-seconds",
			"max-mutating-requests-inflight", "max-requests-inflight", "min-request-timeout"),
		ignores(servers, number, tuned, "goaway-chance"),
		ignores(servers, duration, tuned, "etcd-compaction-interval", "etcd-count-metric-poll-period", "etcd-db-metric-poll-interval", "etcd-healthcheck-timeout", "etcd-readycheck-timeout",
			"livez-grace-period", "request-timeout", "shutdown-delay-duration", "shutdown-watch-termination-grace-period", "storage-initialization-timeout"),
		ignores(servers, list, tuned, "watch-cache-sizes"),
		ignores(servers, text, tuned, "debug-socket-path", "storage-backend", "storage-media-type"),
	)
}

// auditing returns the flags of the audit log. Those that enable one are refused.
func auditing() []Flag {
	const none = "the control plane writes no audit log"
	return slices.Concat(
		refuses(servers, text, none, "audit-log-path", "audit-policy-file", "audit-webhook-config-file"),
		ignores(servers, boolean, none, "audit-log-batch-throttle-enable", "audit-log-compress", "audit-log-truncate-enabled", "audit-webhook-batch-throttle-enable", "audit-webhook-truncate-enabled"),
		ignores(servers, integer, none, "audit-log-batch-buffer-size", "audit-log-batch-max-size", "audit-log-batch-throttle-burst", "audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize",
			"audit-log-truncate-max-batch-size", "audit-log-truncate-max-event-size", "audit-webhook-batch-buffer-size", "audit-webhook-batch-max-size",
			"audit-webhook-batch-throttle-burst", "audit-webhook-truncate-max-batch-size", "audit-webhook-truncate-max-event-size"),
		ignores(servers, number, none, "audit-log-batch-throttle-qps", "audit-webhook-batch-throttle-qps"),
		ignores(servers, duration, none, "audit-log-batch-max-wait", "audit-webhook-batch-initial-backoff", "audit-webhook-batch-max-wait", "audit-webhook-initial-backoff"),
		ignores(servers, text, none, "audit-log-format", "audit-log-mode", "audit-log-version", "audit-webhook-mode", "audit-webhook-version"),
	)
}
