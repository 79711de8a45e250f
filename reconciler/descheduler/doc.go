// Package descheduler runs replicas elsewhere that find no node in their cluster.
//
// In go bindings, now and then, word that something waits, after which one is looked at in
// time, and how many pods of each wait in its clusters since so long; out comes, on each
// binding, the placement that the decider finds for them, in one write, and an Event on it
// and its template. In a dry run the Event says what would come, and nothing is written. Pods that wait are not known in clusters of which nobody sees
// the pods, or reports them: nothing is moved there. Reasons: DescheduleBindingSucceed,
// DescheduleBindingFailed, and DescheduleBindingPlanned in a dry run.
package descheduler
