import { Button, Modal, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { CircleHelp } from "lucide-react";
import { useTexts } from "@/i18n";

/** A button that explains what the numbers of a page count. */
export function WhatCounts({ zone }: { zone?: string }) {
  const texts = useTexts().counting;
  const [isOpen, dialog] = useDisclosure(false);
  return (
    <>
      <Button
        size="compact-sm"
        variant="subtle"
        leftSection={<CircleHelp size={15} aria-hidden />}
        onClick={dialog.open}
      >
        {texts.whatCounts}
      </Button>
      <Modal
        opened={isOpen}
        onClose={dialog.close}
        title={texts.whatCounts}
        size="lg"
        closeButtonProps={{ "aria-label": useTexts().general.close }}
      >
        <Table verticalSpacing={6}>
          <Table.Tbody>
            {texts.definitions.map(([name, meaning]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row" style={{ verticalAlign: "top" }}>
                  {name}
                </Table.Th>
                <Table.Td>{meaning}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        <Text size="sm" c="dimmed" mt="sm">
          {texts.days(zone ?? "")} {texts.reference}
        </Text>
      </Modal>
    </>
  );
}
