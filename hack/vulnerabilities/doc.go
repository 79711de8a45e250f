// Command vulnerabilities looks for known vulnerabilities in programs, as they
// are linked, and fails on those that are not excepted.
//
// In go the scanner (govulncheck, see hack/vuln.mod), the programs, the go.mod whose
// modules in folders are looked up by the version that they began as, and a file of
// exceptions, each with a reason and a last day; out come lines for people and an
// exit code. Where the database of vulnerabilities is out of reach it says that
// nothing was checked, and succeeds. It changes nothing.
package main
