// Package waitqueue is where the Works of one cluster queue up, or wait for what they need.
//
// In go Works, what each waits for, and what comes to pass; out come those that are to be
// looked at again. How long one that failed waits is counted here, too. The package reads
// and writes nothing.
package waitqueue
