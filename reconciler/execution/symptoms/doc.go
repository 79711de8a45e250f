// Package symptoms finds out why workloads in a member are not ready, from their Pods.
//
// In go Works, and what is known of their objects; out comes the condition PodsReady of a Work, and when to look again. It
// asks the member only about a workload that has not been ready for half a minute: for one list of its Pods, of
// bounded size, and for some Warnings where these do not say it; again with pauses that grow. What it remembers may be
// lost. It judges no health, and changes nothing in the member.
package symptoms
