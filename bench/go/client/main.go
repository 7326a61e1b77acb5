// The reference: one command on many hosts by golang.org/x/crypto/ssh, on FANOUT of them at a time.
// client KEY HOSTS PORT FANOUT COMMAND [ROUNDS]; HOSTS has an address and a host key on each line.
// With ROUNDS, runs the command that many times on all hosts over kept connections, and prints each round's seconds.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

func main() {
	key, err := os.ReadFile(os.Args[1])
	check(err)
	signer, err := ssh.ParsePrivateKey(key)
	check(err)
	hosts, err := os.ReadFile(os.Args[2])
	check(err)
	port, command := os.Args[3], os.Args[5]
	width, err := strconv.Atoi(os.Args[4])
	check(err)
	lines := strings.Split(strings.TrimSpace(string(hosts)), "\n")
	if len(os.Args) > 6 {
		rounds, err := strconv.Atoi(os.Args[6])
		check(err)
		measureRounds(lines, port, command, signer, width, rounds)
		return
	}
	onAll(len(lines), width, func(number int) {
		client, err := dial(lines[number], port, signer)
		check(err)
		defer client.Close()
		output, err := run(client, command)
		check(err)
		address, _, _ := strings.Cut(lines[number], " ")
		fmt.Printf("%s: %s", address, output)
	})
}

func measureRounds(lines []string, port, command string, signer ssh.Signer, width, rounds int) {
	clients := make([]*ssh.Client, len(lines))
	onAll(len(lines), width, func(number int) {
		client, err := dial(lines[number], port, signer)
		check(err)
		clients[number] = client
	})
	for range rounds {
		began := time.Now()
		onAll(len(clients), width, func(number int) {
			_, err := run(clients[number], command)
			check(err)
		})
		fmt.Println(time.Since(began).Seconds())
	}
}

func onAll(count, width int, do func(number int)) {
	places := make(chan struct{}, width)
	var all sync.WaitGroup
	for number := range count {
		all.Add(1)
		go func() {
			defer all.Done()
			places <- struct{}{}
			defer func() { <-places }()
			do(number)
		}()
	}
	all.Wait()
}

func dial(line, port string, signer ssh.Signer) (*ssh.Client, error) {
	address, text, _ := strings.Cut(line, " ")
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, err
	}
	config := &ssh.ClientConfig{
		User:              os.Getenv("USER"),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   ssh.FixedHostKey(hostKey),
		HostKeyAlgorithms: []string{hostKey.Type()},
		Timeout:           10 * time.Second,
	}
	return ssh.Dial("tcp", net.JoinHostPort(address, port), config)
}

func run(client *ssh.Client, command string) ([]byte, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	return session.Output(command)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
